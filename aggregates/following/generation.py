"""One filling of a view's rows in the storage node."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from aggregates.following import backfill
from aggregates.following.backfill import Document
from aggregates.following.shape import Shape
from storage_engine.node.client import client
from storage_engine.node.wire import Reply

#: Changes of one transaction.
AT_ONCE = 500
#: Says that a stream's position stays as it is.
STAYS = "-"


@dataclass(slots=True)
class Generation:
    """Which one it is, and how far it has come."""

    tenant_id: UUID
    #: The aggregate's name in the node.
    name: str
    number: int
    #: What documents add to it. A change of the definition is for the next generation.
    shape: Shape
    #: By the stream's label, the place that the node has been told.
    told: dict[str, str] = field(default_factory=dict)
    filling: asyncio.Task[None] | None = None

    @property
    def is_filled(self) -> bool:
        """Whether the back-fill is complete. Raises what ended it otherwise."""
        if self.filling is None:
            return True
        if not self.filling.done():
            return False
        self.filling.result()
        return True

    async def apply(self, label: str, place: str, images: Sequence[Document]) -> None:
        """Tell the node of images, and how far a stream has been read with them."""
        changes = [self.shape.change(*image) for image in images]
        for start in range(0, max(len(changes), 1), AT_ONCE):
            part = changes[start : start + AT_ONCE]
            is_last = start + AT_ONCE >= len(changes)
            await self._call("RB.AGG.APPLY", label, place if is_last else STAYS, *part)
        self.told[label] = place

    def fill(self, collection_id: UUID, read: Callable[[int], None]) -> None:
        """Begin to read the documents that are there. `read` is told how many, now and then."""
        self.filling = asyncio.create_task(self._fill(collection_id, read))

    async def _fill(self, collection_id: UUID, read: Callable[[int], None]) -> None:
        blocks, done = backfill.read(collection_id), 0
        while True:
            changes = await asyncio.to_thread(_next, blocks, self.shape)
            if changes is None:
                return
            if changes:
                await self._call("RB.AGG.APPLY", "documents", STAYS, *changes)
            done += len(changes)
            read(done)

    async def _call(self, verb: str, *arguments: str | bytes) -> Reply:
        return await client().try_call(self.tenant_id, verb, self.name, self.number, *arguments)

    async def aclose(self) -> None:
        if self.filling is not None:
            self.filling.cancel()
            await asyncio.gather(self.filling, return_exceptions=True)


def _next(blocks: Iterator[list[Document]], shape: Shape) -> list[bytes] | None:
    """Return the changes of the next block; None: there is none."""
    block = next(blocks, None)
    return None if block is None else [shape.change(*document) for document in block]
