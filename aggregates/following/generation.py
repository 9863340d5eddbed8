"""One build of a view's rows in the storage node."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from aggregates.following.backfill import Document, DocumentBlock
from aggregates.following.shape import ViewProjection
from storage_engine.node.client import client
from storage_engine.node.wire import Reply

#: Changes per transaction.
AT_ONCE = 500
#: Says that a stream's position stays as it is.
STAYS = "-"


@dataclass(slots=True)
class ViewGeneration:
    """A generation and its progress."""

    tenant_id: UUID
    #: The aggregate's name in the node.
    name: str
    number: int
    #: What documents contribute. A change of the definition applies to the next generation.
    shape: ViewProjection
    #: The position last sent to the node, by the stream's label.
    positions: dict[str, str] = field(default_factory=dict)
    filling: asyncio.Task[None] | None = None
    #: The position of the storage node's log that the streams must have reached before its rows are
    #: complete; 0: any.
    complete_at: int = 0

    @property
    def is_filled(self) -> bool:
        """Whether the backfill is complete. Raises its error if it failed."""
        if self.filling is None:
            return True
        if not self.filling.done():
            return False
        self.filling.result()
        return True

    async def apply(self, label: str, position: str, images: Sequence[Document]) -> None:
        """Send images to the node, with the position up to which a stream has been read."""
        changes = [self.shape.change(*image) for image in images]
        for start in range(0, max(len(changes), 1), AT_ONCE):
            part = changes[start : start + AT_ONCE]
            is_last = start + AT_ONCE >= len(changes)
            await self._call("RB.AGG.APPLY", label, position if is_last else STAYS, *part)
        self.positions[label] = position

    def fill(self, blocks: Iterator[DocumentBlock], read: Callable[[int], None]) -> None:
        """Start reading the existing documents. `read` is called with the count, now and then."""
        self.filling = asyncio.create_task(self._fill(blocks, read))

    async def _fill(self, blocks: Iterator[DocumentBlock], read: Callable[[int], None]) -> None:
        done = 0
        while (part := await asyncio.to_thread(_next, blocks, self.shape)) is not None:
            self.complete_at, changes = part
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


def _next(blocks: Iterator[DocumentBlock], shape: ViewProjection) -> tuple[int, list[bytes]] | None:
    """Return where the next block is complete, and its changes; None: there is no more."""
    block = next(blocks, None)
    if block is None:
        return None
    return block.complete_at, [shape.change(*document) for document in block.documents]
