"""The answer as the server knows it, with the pending writes applied on top.

The times of documents, by which `$created` and `$updated` sort, are not part of answers. Only that
pending writes are later than what the server has sent is certain.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import total_ordering
from typing import Any

from rillbase.local.matcher import matches
from rillbase.local.paths import values_at
from rillbase.local.pending import DeletedDocument, UnconfirmedWrite
from rillbase.order import Rank, rank
from rillbase.query import Spec
from rillbase.shapes import Direction, Document
from rillbase.view import Item


@dataclass(frozen=True, slots=True)
class PlacedItem:
    """A document, and the pending writes that created and last changed it, by number; 0: none."""

    item: Item
    created: int = 0
    updated: int = 0


def overlaid(items: Iterable[Item], pending: Sequence[UnconfirmedWrite], spec: Spec) -> list[Item]:
    """Return the answer with the writes applied that the server has not sent yet."""
    if spec.group is not None:
        # Only the server can compute the effect of a write on a row that combines several
        # documents.
        return list(items)
    shown = [PlacedItem(item) for item in items]
    for number, write in enumerate(pending, 1):
        _apply(shown, write, number, spec)
    return [placed.item for placed in (shown if spec.limit is None else shown[: spec.limit])]


def _apply(shown: list[PlacedItem], write: UnconfirmedWrite, number: int, spec: Spec) -> None:
    position = next((n for n, one in enumerate(shown) if one.item.key == write.key), None)
    current = None if position is None else shown.pop(position)
    outcome = write.outcome(None if current is None else current.item.document)
    if isinstance(outcome, DeletedDocument):
        return
    if isinstance(outcome, dict):
        # A projected document may lack fields that filter and sort need. With lookups, looked-up
        # documents may replace fields, and those that a new document refers to are not known.
        is_whole = spec.projection is None and not spec.lookup
        verdict = matches(spec.filter, outcome) if is_whole else None
        if verdict is False or (verdict is None and current is None):
            return
        item = _item(write, None if current is None else current.item, outcome, spec)
        placed = PlacedItem(item, number if current is None else current.created, number)
        _insert(shown, placed, current, position, spec)
    elif current is not None and position is not None:
        item = replace(current.item, is_pending=True)
        shown.insert(position, replace(current, item=item))


def _insert(
    shown: list[PlacedItem],
    placed: PlacedItem,
    current: PlacedItem | None,
    position: int | None,
    spec: Spec,
) -> None:
    """Insert a document that was at `position`, or that is new."""
    is_whole = spec.projection is None and not spec.lookup
    stays = current is not None and (not is_whole or _order(current, spec) == _order(placed, spec))
    if stays and position is not None:
        shown.insert(position, placed)
        return
    its_rank = _order(placed, spec)
    index = next((n for n, other in enumerate(shown) if _order(other, spec) > its_rank), len(shown))
    # A document before the first row of a later page may belong to the previous page.
    if index == 0 and spec.offset:
        return
    shown.insert(index, placed)


def _item(write: UnconfirmedWrite, current: Item | None, document: Document, spec: Spec) -> Item:
    known = None if write.confirmation is None else write.confirmation.version
    version = known if known is not None or current is None else current.version
    visible = document if current is None else _visible(current.document, document, spec)
    return Item(write.operation.id, version, visible, is_pending=write.confirmation is None)


def _visible(current: Document, document: Document, spec: Spec) -> Document:
    """Return the visible part of a document: the fields of the current one, and its lookups."""
    names = document if spec.projection is None else [name for name in current if name in document]
    looked_up = [one["as"] for one in spec.lookup if one["as"] in current]
    return {name: document[name] for name in names} | {name: current[name] for name in looked_up}


def _order(placed: PlacedItem, spec: Spec) -> tuple[Any, ...]:
    """Return the sort key of an answer: the keys of its sort, then the `_id`."""
    by = [_directed(_sort_rank(placed, path, way), way) for path, way in spec.sort]
    return (*by, rank(placed.item.id))


def _sort_rank(placed: PlacedItem, path: str, direction: Direction) -> Rank:
    """For a list, the element that comes first in the direction of the sort counts."""
    if path == "$created":
        return rank(placed.created)
    if path == "$updated":
        return rank(placed.updated)
    ranks = [
        one
        for value in values_at(placed.item.document, path)
        for one in (
            [rank(v) for v in value] if isinstance(value, list) and value else [rank(value)]
        )
    ]
    best = min if direction == 1 else max
    return best(ranks, default=rank(None))


def _directed(value_rank: Rank, direction: Direction) -> Any:
    return value_rank if direction == 1 else _Descending(value_rank)


@total_ordering
class _Descending:
    """Reverses an order."""

    __slots__ = ("of",)

    def __init__(self, of: Rank) -> None:
        self.of = of

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Descending) and other.of == self.of

    def __lt__(self, other: _Descending) -> bool:
        return other.of < self.of

    def __hash__(self) -> int:
        return hash(self.of)
