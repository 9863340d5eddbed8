"""Relay's connections over the keyset pages of the REST API.

A page has one cursor, that of the next page. A row's own cursor therefore consists of the start of
the page and the number of rows to skip; that of the last row is the cursor of the next page, so
paging forward reads by key alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from documents.api import queries
from documents.api.queries import MAX_OFFSET
from documents.store.queries import MAX_LIMIT
from foundation.api.rendering import exact_json
from foundation.errors import FieldProblem, InvalidBody
from foundation.json_types import JsonObject, JsonValue
from rillbase_server.graphql import opaque
from rillbase_server.graphql.context import Context

DEFAULT_FIRST, MAX_FIRST = 100, 1_000


@dataclass(frozen=True, slots=True)
class PagePosition:
    """A position between two rows: a number of rows after the start of a page."""

    start: str | None
    passed: int

    @property
    def cursor(self) -> str:
        return opaque.write([self.start, self.passed])

    @classmethod
    def read(cls, cursor: str | None, max_passed: int) -> PagePosition:
        """Parse a cursor that skips at most this many rows."""
        if cursor is None:
            return cls(None, 0)
        try:
            match opaque.read(cursor):
                case [None | str() as start, int(passed)] if 0 <= passed <= max_passed:
                    return cls(start, passed)
        except opaque.InvalidOpaqueText:
            pass
        raise _no_cursor()


@dataclass(frozen=True, slots=True)
class DocumentsPage:
    """A page: its envelopes, its start, and the next cursor."""

    items: list[JsonObject]
    begin: PagePosition
    #: The start of the next page, if it is known without counting.
    following: str | None
    has_next: bool
    has_previous: bool
    notices: list[JsonObject]

    def cursor(self, number: int) -> str:
        """Return the cursor of a row."""
        if number == len(self.items) - 1 and self.following is not None:
            return PagePosition(self.following, 0).cursor
        return PagePosition(self.begin.start, self.begin.passed + number + 1).cursor


async def read(
    context: Context, collection: str, query: JsonObject, first: int | None, after: str | None
) -> DocumentsPage:
    """Read the rows of a query after a position."""
    limit = _number(first)
    position = PagePosition.read(after, MAX_LIMIT - MAX_FIRST)
    body: dict[str, JsonValue] = {
        **query,
        "limit": limit + position.passed,
        "cursor": position.start,
    }
    answer = await context.post_to_collection(queries.query, "query", collection, exact_json(body))
    items, following = answer["items"], answer["next_cursor"]
    if not isinstance(items, list) or not (following is None or isinstance(following, str)):
        raise TypeError("a page must have items and a cursor")
    rows = cast("list[JsonObject]", items[position.passed :])
    return DocumentsPage(
        rows,
        position,
        following,
        has_next=following is not None,
        has_previous=after is not None,
        notices=_notices(answer),
    )


async def read_groups(
    context: Context, collection: str, query: JsonObject, first: int | None, after: str | None
) -> DocumentsPage:
    """Read the rows of a query with groups. Positions count from the first row."""
    limit = _number(first)
    position = PagePosition.read(after, MAX_OFFSET)
    if position.start is not None:
        raise _no_cursor()
    body: dict[str, JsonValue] = {**query, "offset": position.passed, "limit": limit + 1}
    answer = await context.post_to_collection(queries.query, "query", collection, exact_json(body))
    rows = cast("list[JsonObject]", answer["rows"])
    return DocumentsPage(
        rows[:limit],
        position,
        None,
        has_next=len(rows) > limit,
        has_previous=after is not None,
        notices=_notices(answer),
    )


def _notices(answer: JsonObject) -> list[JsonObject]:
    return cast("list[JsonObject]", answer.get("notices", []))


def _number(first: int | None) -> int:
    """Return the number of rows of a page."""
    limit = DEFAULT_FIRST if first is None else first
    if not 0 < limit <= MAX_FIRST:
        raise _wrong("first", f"Expected an integer from 1 to {MAX_FIRST}.")
    return limit


def _no_cursor() -> InvalidBody:
    return _wrong("after", "The cursor was not issued for a connection of this API.")


def _wrong(member: str, detail: str) -> InvalidBody:
    return InvalidBody(errors=[FieldProblem(f"/{member}", "invalid", detail)])
