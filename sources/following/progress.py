"""How far a source's documents are, kept in the source's row.

What decides is written with the documents, in their transaction and under the fence of whoever
follows now: where the fence is another one the statement fails, and the documents with it. What
only tells people how it stands is written beside, and may be lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from uuid import UUID

import psycopg
from django.db.models import F
from django.utils import timezone

from documents.store.group import run_group
from documents.store.write import NO_OPERATIONS, Write
from foundation import failures
from foundation.errors import ApiError, CollectionReadOnly, NotFound
from foundation.postgres import Statement
from foundation.postgres.session import Oid, Step, int8
from rillbase_native import Operations
from sources.following.net import SourceDiverged
from sources.following.rows import ALIAS, on_rows
from sources.models import Source

#: Divides by zero where another fence is in force, which ends the transaction.
_MOVE = Statement(
    "WITH moved AS (UPDATE sources_source SET confirmed = $3, part_of = $4, part = $5 "
    "WHERE id = $1 AND fence = $2 AND wish = 'running' RETURNING 1) "
    "SELECT 1 / count(*) FROM moved",
    (Oid.UUID, Oid.INT8, Oid.INT8, Oid.INT8, Oid.INT8),
)


class FollowerFenced(Exception):
    """Another process holds the lease of the source, or the source was stopped."""


class DocumentRefused(Exception):
    """A row makes no document that the collection takes."""

    def __init__(self, error: ApiError) -> None:
        super().__init__(error.detail or error.title)
        self.error = error


@dataclass(frozen=True, slots=True)
class LogPosition:
    """The position in the server's log up to which changes are applied."""

    confirmed: int
    #: Of a large transaction that is being applied: its commit, and its changes so far.
    part_of: int = 0
    part: int = 0


class Progress:
    """One holding of a source's fence."""

    def __init__(self, row: Source) -> None:
        self.row = row
        self.place = LogPosition(row.confirmed, row.part_of, row.part)

    @classmethod
    async def take(cls, source_id: UUID) -> Progress:
        """Raise the fence, and find out how far it is."""
        return cls(await on_rows(partial(_take, source_id)))

    async def write(self, operations: Operations | None, place: LogPosition) -> None:
        """Write documents, and that they stand for this place of the log, or nothing at all."""
        row = self.row
        wanted = Write(
            row.tenant_id,
            row.collection_name,
            NO_OPERATIONS if operations is None else operations,
            also=lambda _: [self._move(place)],
            source_id=row.pk,
        )
        try:
            (ended,) = await run_group(row.tenant_id, [wanted])
        except psycopg.errors.DivisionByZero:
            raise FollowerFenced from None
        except psycopg.Error as failed:
            # Ours: the owner's database has no part in it.
            raise failures.passing(failed) or failed from failed
        if isinstance(ended, (CollectionReadOnly, NotFound)) and operations is not None:
            raise _missing(ended)
        if isinstance(ended, ApiError):
            raise DocumentRefused(ended)
        self.place = place

    def _move(self, place: LogPosition) -> Step:
        row = self.row
        numbers = (row.fence, place.confirmed, place.part_of, place.part)
        return _MOVE, (row.pk.bytes, *map(int8, numbers))

    async def confirm(self, lsn: int) -> None:
        """Note that nothing of the table is in the log up to this place."""
        await self.write(None, replace(self.place, confirmed=lsn))

    async def begin_copy(self, values: Mapping[str, object], starts_at: int) -> None:
        """Note that another copy is under way, which will stand for this place."""
        await self.note(
            **values, is_copied=False, confirmed=starts_at, part_of=0, part=0, rows_copied=0
        )
        self.place = LogPosition(starts_at)

    async def note(self, **values: object) -> None:
        """Write into the row, as long as the fence is in force."""
        if not await on_rows(partial(_note, self.row, values)):
            raise FollowerFenced
        for name, value in values.items():
            setattr(self.row, name, value)

    async def tell(self, state: str, condition: str = "", detail: str = "") -> None:
        """Say how it stands."""
        row = self.row
        if (row.state, row.condition, row.detail) == (state, condition, detail):
            return
        since = row.condition_since if row.condition == condition else timezone.now()
        await self.note(
            state=state,
            condition=condition,
            detail=detail[:500],
            condition_since=since if condition else None,
        )


def _missing(ended: ApiError) -> Exception:
    """A collection that has gone, or has another source; or a document that should be there."""
    return (
        FollowerFenced() if isinstance(ended, CollectionReadOnly) else SourceDiverged(ended.detail)
    )


def _take(source_id: UUID) -> Source:
    rows = Source.unscoped.using(ALIAS).filter(pk=source_id)
    if not rows.exclude(wish=Source.Wish.REMOVED).update(fence=F("fence") + 1):
        raise FollowerFenced
    return rows.get()


def _note(row: Source, values: Mapping[str, object]) -> bool:
    wanted = Source.unscoped.using(ALIAS).filter(pk=row.pk, fence=row.fence)
    return bool(wanted.update(**values))
