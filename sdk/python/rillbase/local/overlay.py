"""The answer as the server knows it, with the pending writes applied on top."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import total_ordering
from typing import Any

from rillbase.local.matcher import matches
from rillbase.local.paths import values_at
from rillbase.local.pending import DeletedDocument, UnconfirmedWrite
from rillbase.order import Rank, rank
from rillbase.query import Spec
from rillbase.shapes import Direction, Document
from rillbase.view import Item


def overlaid(items: Iterable[Item], pending: Sequence[UnconfirmedWrite], spec: Spec) -> list[Item]:
    """Return the answer with the writes applied that the server has not sent yet."""
    shown = list(items)
    if spec.group is not None:
        # Only the server can compute the effect of a write on a row that combines several
        # documents.
        return shown
    for write in pending:
        _apply(shown, write, spec)
    return shown if spec.limit is None else shown[: spec.limit]


def _apply(shown: list[Item], write: UnconfirmedWrite, spec: Spec) -> None:
    position = next((n for n, item in enumerate(shown) if item.key == write.key), None)
    current = None if position is None else shown.pop(position)
    outcome = write.outcome(None if current is None else current.document)
    if isinstance(outcome, DeletedDocument):
        return
    if isinstance(outcome, dict):
        _settle(shown, current, position, write, outcome, spec)
    elif current is not None and position is not None:
        shown.insert(position, replace(current, is_pending=True))


def _settle(
    shown: list[Item],
    current: Item | None,
    position: int | None,
    write: UnconfirmedWrite,
    document: Document,
    spec: Spec,
) -> None:
    # A projected document may lack fields that filter and sort need. With lookups, looked-up
    # documents may replace fields, and those that a new document refers to are not known.
    is_whole = spec.projection is None and not spec.lookup
    verdict = matches(spec.filter, document) if is_whole else None
    if verdict is False or (verdict is None and current is None):
        return
    item = _item(write, current, document, spec)
    stays = current is not None and (not is_whole or _order(current, spec) == _order(item, spec))
    if stays and position is not None:
        shown.insert(position, item)
        return
    item_rank = _order(item, spec)
    index = next(
        (n for n, other in enumerate(shown) if _order(other, spec) > item_rank), len(shown)
    )
    # A document before the first row of a later page may belong to the previous page.
    if index == 0 and spec.offset:
        return
    shown.insert(index, item)


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


def _order(item: Item, spec: Spec) -> tuple[Any, ...]:
    """Return the sort key of an answer: the keys of its sort, then the `_id`."""
    by = [_directed(_sort_rank(item.document, path, way), way) for path, way in spec.sort]
    return (*by, rank(item.id))


def _sort_rank(document: Document, path: str, direction: Direction) -> Rank:
    """For a list, the element that comes first in the direction of the sort counts."""
    ranks = [
        one
        for value in values_at(document, path)
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
