"""The net effect of several row changes, as operations on documents.

Pure. Only the last state of each document counts: a row that was changed ten times is written once,
and one that was inserted and deleted is not written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from sources.mapping.cells import UNCHANGED
from sources.mapping.shape import DocumentShape, Fields, RowLayout
from sources.upstream.pgoutput import RowChange

#: A change, and the layout of its table's rows.
ChangeWithLayout = tuple[RowChange, RowLayout]


class SourceDiverged(Exception):
    """A change of a row without a document: documents and table have diverged."""


def ids_of_incomplete_rows(changes: Iterable[ChangeWithLayout]) -> set[str]:
    """Return the ids of rows whose changes omit unchanged values: their documents have them."""
    return {
        layout.identity(change.new if change.old is None else change.old)
        for change, layout in changes
        if change.new is not None and UNCHANGED in change.new
    }


class NetChanges:
    """Combines changes in order. `documents_before`: the documents of incomplete rows."""

    def __init__(self, shape: DocumentShape, documents_before: Mapping[str, Fields]) -> None:
        self._before = documents_before
        self._write = shape.document()
        #: The final row by id; None: it was deleted.
        self._rows: dict[str, Fields | None] = {}
        #: Whether the document existed before its first change.
        self._existed: dict[str, bool] = {}

    def add(self, change: RowChange, layout: RowLayout) -> None:
        """Add a change."""
        if change.new is None:
            if change.old is None:
                raise ValueError("a deleted row must have a key")
            self._set_row(layout.identity(change.old), None, existed=True)
            return
        identity = layout.identity(change.new, change.old)
        source = identity if change.old is None else layout.identity(change.old)
        fields = self._complete(layout.fields(change.new, change.old), source)
        if source != identity:
            self._set_row(source, None, existed=True)
        self._set_row(identity, fields, existed=not change.is_insert and source == identity)

    def _complete(self, fields: Sequence[str | None], source: str) -> Fields:
        """Fill in the values that the change left unchanged."""
        if None not in fields:
            return [value for value in fields if value is not None]
        previous = self._rows[source] if source in self._rows else self._before.get(source)
        if previous is None:
            raise SourceDiverged(f"the document {source[:100]} does not exist")
        return [
            old if value is None else value for value, old in zip(fields, previous, strict=True)
        ]

    def _set_row(self, identity: str, fields: Fields | None, *, existed: bool) -> None:
        self._existed.setdefault(identity, existed)
        self._rows[identity] = fields

    def add_each(self, changes: Iterable[ChangeWithLayout]) -> Iterator[None]:
        """Add changes, yielding after each."""
        for change, layout in changes:
            self.add(change, layout)
            yield

    def operations(self) -> Iterator[str]:
        """Yield the operations in the form of a bulk body."""
        for identity, fields in self._rows.items():
            if fields is not None:
                document = self._write(identity, fields)
                yield f'{{"replace":{{"id":{identity},"document":{document}}}}}'
            elif self._existed[identity]:
                yield f'{{"delete":{{"id":{identity}}}}}'
