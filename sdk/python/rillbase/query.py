"""Queries as data. Immutable: every method returns another query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Self, TypeAlias

from rillbase import ejson
from rillbase.arguments import check_choice, check_count, check_mapping, check_name
from rillbase.shapes import Direction, Document

Operator: TypeAlias = Literal["==", "!=", "<", "<=", ">", ">=", "in", "not in"]
OPERATORS: Mapping[str, str] = {
    "==": "$eq",
    "!=": "$ne",
    "<": "$lt",
    "<=": "$lte",
    ">": "$gt",
    ">=": "$gte",
    "in": "$in",
    "not in": "$nin",
}

_LISTS = ("in", "not in")


@dataclass(frozen=True, slots=True)
class Spec:
    """The parts of a query."""

    collection: str
    filter: Document = field(default_factory=dict)
    sort: tuple[tuple[str, Direction], ...] = ()
    projection: Document | None = None
    offset: int | None = None
    limit: int | None = None
    #: How documents are grouped into rows: `by` and `measures`.
    group: Document | None = None
    #: Documents that are included with each one: `from`, `local` and `as` of each lookup.
    lookup: tuple[Document, ...] = ()

    def narrowed(self, more: Mapping[str, object]) -> Self:
        check_mapping("A filter", more)
        both = {"$and": [self.filter, dict(more)]} if self.filter else dict(more)
        return replace(self, filter=both)

    def where(self, name: str, operator: Operator, value: object) -> Self:
        check_name("The field of where()", name)
        check_choice("where() has no operator", operator, OPERATORS)
        if operator in _LISTS and not isinstance(value, list | tuple):
            raise TypeError(f"The operator {operator!r} requires a list of values, not {value!r}.")
        return self.narrowed({name: {OPERATORS[operator]: value}})

    def sorted_by(self, name: str, *, descending: bool) -> Self:
        check_name("The field of sort()", name)
        return replace(self, sort=(*self.sort, (name, -1 if descending else 1)))

    def projected(self, fields: Sequence[str] | Mapping[str, object]) -> Self:
        plain = dict(fields) if isinstance(fields, Mapping) else dict.fromkeys(fields, 1)
        return replace(self, projection=plain)

    def grouped(self, by: Sequence[str], measures: Mapping[str, Mapping[str, str]]) -> Self:
        named = {name: dict(measure) for name, measure in measures.items()}
        return replace(self, group={"by": list(by), "measures": named})

    def looking_up(self, source: str, local: str, name: str) -> Self:
        lookup: Document = {"from": source, "local": local, "as": name}
        return replace(self, lookup=(*self.lookup, lookup))

    def bounded(self, *, offset: int | None = None, limit: int | None = None) -> Self:
        for what, value in (("An offset", offset), ("A limit", limit)):
            if value is not None:
                check_count(what, value)
        return replace(
            self,
            offset=self.offset if offset is None else offset,
            limit=self.limit if limit is None else limit,
        )

    def plain(self) -> Self:
        """Return the query with its values as the server converts them."""
        return replace(self, filter=ejson.normal(self.filter))

    def body(self) -> Document:
        """Return the members of a query's message."""
        named = {
            "filter": self.filter,
            "sort": [list(part) for part in self.sort] or None,
            "projection": self.projection,
            "offset": self.offset,
            "limit": self.limit,
            "group": self.group,
            "lookup": list(self.lookup) or None,
        }
        return {name: value for name, value in named.items() if value is not None}
