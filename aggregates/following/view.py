"""One view: its generations in the storage node, and its state in the control plane."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from django.db import connections

from aggregates.definitions.describe import definition_of, for_node
from aggregates.following import backfill
from aggregates.following.backfill import Document
from aggregates.following.generation import ViewGeneration
from aggregates.following.shape import SkippedDocuments, ViewProjection
from aggregates.models import Aggregate
from aggregates.node import NO_AGGREGATE
from documents.backend import Backend
from documents.models import Collection
from documents.store.notices import NOT_EVALUATED
from foundation import metrics
from storage_engine.node.client import client
from storage_engine.node.wire import CommandRejected
from tenants import error_log

ALIAS = "relay"
#: How often the number of documents read is reported to the control plane.
REPORT_S = 1.0


@dataclass(slots=True, eq=False)
class FollowedView:
    """A view that is followed."""

    row: Aggregate
    backend: Backend
    #: The generation that queries see, as long as it is in step with the streams.
    current: ViewGeneration | None = None
    #: The generation being filled beside it, and the build that it is for.
    next_generation: ViewGeneration | None = None
    next_build: int = 0
    #: Images read but not yet sent to the node, by partition.
    images: dict[int, list[Document]] = field(default_factory=dict)
    _documents_reported_s: float = 0.0
    _skipped_reported: int = 0
    _skipped_reported_s: float = 0.0

    @property
    def name(self) -> str:
        return str(self.row.pk)

    @property
    def collection_id(self) -> UUID:
        collection_id = self.row.collection_id
        if collection_id is None:
            raise ValueError("not a view")
        return collection_id

    @property
    def wants_build(self) -> bool:
        """Whether a generation has to be started."""
        if self.next_generation is not None:
            return self.next_build != self.row.build_wanted
        return self.current is None or self.row.build_done != self.row.build_wanted

    @property
    def is_failed(self) -> bool:
        """Whether it has stopped until its definition changes."""
        return self.row.state == Aggregate.State.FAILED

    async def resume(self) -> None:
        """Resume the generation that queries see, from the node's state."""
        reply = await client().try_call(self.row.tenant_id, "RB.AGG.INFO", self.name)
        info = json.loads(reply) if isinstance(reply, bytes) else {}
        if info.get("generation") == self.row.generation:
            counted = SkippedDocuments(self.row.left_out, self.row.left_out_detail)
            shape = ViewProjection.of(info["definition"], self.row.filter, counted)
            positions = {str(label): str(position) for label, position in info["positions"]}
            self._skipped_reported = counted.count
            self.current = ViewGeneration(
                self.row.tenant_id, self.name, self.row.generation, shape, positions
            )

    async def begin(self) -> None:
        """Start a new generation. The streams have been read up to now, and reading continues."""
        await self.abandon_build()
        number = await self._define()
        shape = ViewProjection.of(definition_of(self.row), self.row.filter)
        self.next_generation = ViewGeneration(self.row.tenant_id, self.name, number, shape)
        self.next_build = self.row.build_wanted
        metrics.VIEWS_BUILDS.inc()
        await self.note(building=number, documents_read=0, state=Aggregate.State.BUILDING, error="")
        blocks = backfill.read(self.backend, self.row.tenant_id, self.collection_id)
        self.next_generation.fill(blocks, self._documents_read)

    async def _define(self) -> int:
        definition = for_node(self.row)
        node, tenant_id = client(), self.row.tenant_id
        try:
            await node.try_call(tenant_id, "RB.AGG.INFO", self.name)
        except CommandRejected as error:
            if error.code != NO_AGGREGATE:
                raise
            self.current = None
            reply = await node.try_call(tenant_id, "RB.AGG.DEFINE", self.name, definition)
        else:
            reply = await node.try_call(
                tenant_id, "RB.AGG.DEFINE", self.name, definition, "REPLACE"
            )
        if not isinstance(reply, int):
            raise CommandRejected("UNEXPECTED a number was expected")
        return reply

    async def send_images(self, labels: Mapping[int, str], positions: Mapping[int, str]) -> None:
        """Send the images read so far to the node; `labels` names the streams."""
        images, self.images = self.images, {}
        for generation in (self.current, self.next_generation):
            if generation is None:
                continue
            for partition, label in labels.items():
                fresh = images.get(partition, [])
                if fresh or generation.positions.get(label) != positions[partition]:
                    await generation.apply(label, positions[partition], fresh)
        await self._report_left_out()

    async def _report_left_out(self) -> None:
        """Report to the row and the error log, now and then, what queries lack."""
        if self.current is None:
            return
        left_out, now_s = self.current.shape.left_out, time.monotonic()
        new = left_out.count - self._skipped_reported
        if new <= 0 or now_s - self._skipped_reported_s < REPORT_S:
            return
        self._skipped_reported, self._skipped_reported_s = left_out.count, now_s
        await self.note(left_out=left_out.count, left_out_detail=left_out.detail)
        error_log.note(
            self.row.tenant_id,
            error_log.Area.AGGREGATE,
            NOT_EVALUATED,
            place=self.name,
            detail=f"{new} left out: {left_out.detail}",
        )

    async def finish_build(self, labels: Mapping[int, str], positions: Mapping[int, str]) -> None:
        """Switch queries to the filled generation, and record its position."""
        next_generation = self.next_generation
        if (
            next_generation is None
            or not next_generation.is_filled
            or self.next_build != self.row.build_wanted
        ):
            return
        for partition, label in labels.items():
            await next_generation.apply(label, positions[partition], [])
        if self.row.generation != next_generation.number:
            await self._switch(next_generation)
        done = {"build_done": self.next_build, "generation": next_generation.number, "building": 0}
        # The count of omitted versions starts again with the new rows.
        counted = {"left_out": 0, "left_out_detail": ""}
        await self.note(**done, **counted, state=Aggregate.State.ACTIVE, error="")
        self.row.build_done, self.row.generation = self.next_build, next_generation.number
        self.current, self.next_generation = next_generation, None
        self._skipped_reported, self._skipped_reported_s = 0, 0.0
        await self._report_left_out()

    async def _switch(self, next_generation: ViewGeneration) -> None:
        # The first generation of an aggregate is the one that queries see from the beginning.
        await client().try_call(
            self.row.tenant_id, "RB.AGG.SWITCH", self.name, next_generation.number
        )

    async def fail(self, why: str) -> None:
        """Stop, and record why."""
        await self.abandon_build()
        self.current = None
        await self.note(state=Aggregate.State.FAILED, error=why)
        self.row.state, self.row.error = Aggregate.State.FAILED, why
        error_log.note(
            self.row.tenant_id,
            error_log.Area.AGGREGATE,
            "view_failed",
            place=self.name,
            detail=why,
        )

    async def abandon_build(self) -> None:
        """Abandon the generation that is being filled."""
        next_generation, self.next_generation = self.next_generation, None
        if next_generation is not None:
            await next_generation.aclose()

    async def note(self, **values: object) -> None:
        """Update the row, unless another build has been requested."""
        await asyncio.to_thread(_note, self.row, values)

    def _documents_read(self, count: int) -> None:
        now_s = time.monotonic()
        if now_s - self._documents_reported_s > REPORT_S:
            self._documents_reported_s = now_s
            _telling.add(task := asyncio.create_task(self.note(documents_read=count)))
            task.add_done_callback(_telling.discard)


_telling: set[asyncio.Task[None]] = set()


def _note(row: Aggregate, values: Mapping[str, object]) -> None:
    try:
        unchanged = Aggregate.unscoped.using(ALIAS).filter(pk=row.pk, build_wanted=row.build_wanted)
        unchanged.update(**values)
    finally:
        connections[ALIAS].close()


class ViewRow(NamedTuple):
    """A view in the control plane."""

    row: Aggregate
    backend: Backend
    collection_exists: bool


def load() -> list[ViewRow]:
    """Return every view. One whose collection does not exist any more counts as PostgreSQL's."""
    try:
        rows = list(Aggregate.unscoped.using(ALIAS).exclude(collection_id=None))
        collections: dict[UUID | None, tuple[Backend, bool]] = {
            pk: (Backend(backend), state == Collection.State.ACTIVE)
            for pk, backend, state in Collection.unscoped.using(ALIAS)
            .filter(pk__in={row.collection_id for row in rows})
            .values_list("pk", "backend", "state")
        }
    finally:
        connections[ALIAS].close()
    missing = (Backend.POSTGRES, False)
    return [ViewRow(row, *collections.get(row.collection_id, missing)) for row in rows]
