"""Pending writes, as far as their effect can be predicted.

A write is pending until it is rejected, or until every live query of its collection has caught up
with it. Meanwhile, the server's response to the write replaces the prediction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from rillbase.ids import key
from rillbase.local.update import merged, updated
from rillbase.shapes import Document

Kind: TypeAlias = Literal["insert", "replace", "update", "merge", "delete"]


@dataclass(frozen=True, slots=True)
class WriteOperation:
    """The effect of a write on one document. Its values are as the server returns them."""

    kind: Kind
    collection: str
    id: object
    #: The document of `insert` and `replace`, or the change of `update` and `merge`.
    body: Document = field(default_factory=dict)
    #: False: array filters select elements that only the server can find.
    is_foreseeable: bool = True


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The server's response to a write; None if there was none."""

    version: int | None = None
    document: Document | None = None


class UnpredictableOutcome:
    """The effect on a document cannot be predicted here."""


class DeletedDocument:
    """A document that the write deletes."""


UNKNOWN, GONE = UnpredictableOutcome(), DeletedDocument()
Outcome: TypeAlias = Document | UnpredictableOutcome | DeletedDocument


@dataclass(eq=False, slots=True)
class UnconfirmedWrite:
    """A pending operation."""

    operation: WriteOperation
    key: str = field(init=False)
    confirmation: Confirmation | None = None
    #: The live queries that have not caught up with it yet.
    waiting: set[Holder] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.key = key(self.operation.id)

    def outcome(self, current: Document | None) -> Outcome:
        """Return the effect on a document, or None if it is unknown."""
        known = None if self.confirmation is None else self.confirmation.document
        return _foreseen(self.operation, current) if known is None else known


def _foreseen(operation: WriteOperation, current: Document | None) -> Outcome:
    match operation.kind:
        case "insert" | "replace":
            return {"_id": operation.id, **operation.body}
        case "delete":
            return GONE
        case _ if current is None or not operation.is_foreseeable:
            return UNKNOWN
        case "merge":
            return merged(current, operation.body)
        case "update":
            after = updated(current, operation.body)
            return UNKNOWN if after is None else after


class Holder(Protocol):
    """A live query, from the point of view of the writes."""

    def pending_changed(self) -> None:
        """The pending writes have changed."""

    def confirmed(self, pending: UnconfirmedWrite) -> None:
        """The server has confirmed a write: release it once the query has caught up."""


class LocalWrites:
    """The pending writes of a client."""

    def __init__(self) -> None:
        self._pending: dict[str, list[UnconfirmedWrite]] = {}
        self._holders: dict[str, list[Holder]] = {}

    def of(self, collection: str) -> Sequence[UnconfirmedWrite]:
        """Return a collection's pending writes, in the order in which they were made."""
        return self._pending.get(collection, ())

    def join(self, collection: str, holder: Holder) -> None:
        self._holders.setdefault(collection, []).append(holder)

    def leave(self, collection: str, holder: Holder) -> None:
        if holder in self._holders.get(collection, ()):
            self._holders[collection].remove(holder)
        for pending in list(self.of(collection)):
            self.release(pending, holder)

    def begin(self, operations: Iterable[WriteOperation]) -> list[UnconfirmedWrite]:
        begun = [UnconfirmedWrite(operation) for operation in operations]
        for pending in begun:
            self._pending.setdefault(pending.operation.collection, []).append(pending)
        self._notify(begun)
        return begun

    def confirm(self, pending: UnconfirmedWrite, confirmation: Confirmation) -> None:
        pending.confirmation = confirmation
        holders = list(self._holders.get(pending.operation.collection, ()))
        pending.waiting.update(holders)
        for holder in holders:
            holder.confirmed(pending)
        if not pending.waiting:
            self.undo([pending])

    def release(self, pending: UnconfirmedWrite, holder: Holder) -> None:
        """Record that a live query has caught up with a write."""
        pending.waiting.discard(holder)
        if pending.confirmation is not None and not pending.waiting:
            self.undo([pending])

    def undo(self, writes: Sequence[UnconfirmedWrite]) -> None:
        """Remove writes: rejected, or superseded by what the server sent."""
        for pending in writes:
            remaining = self._pending.get(pending.operation.collection, [])
            if pending in remaining:
                remaining.remove(pending)
        self._notify(writes)

    def _notify(self, changed: Iterable[UnconfirmedWrite]) -> None:
        for collection in {pending.operation.collection for pending in changed}:
            for holder in list(self._holders.get(collection, ())):
                holder.pending_changed()
