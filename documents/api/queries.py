"""Asking for documents by filter."""

from __future__ import annotations

import re

from documents.api.requests import (
    READ,
    collection_name,
)
from documents.store import queries
from documents.store.explain import explain as explain_query
from documents.store.queries import DEFAULT_LIMIT, MAX_LIMIT, Query
from foundation.api.rendering import to_json
from foundation.errors import FieldProblem, Forbidden, InvalidBody, InvalidParameter
from foundation.http import Answer
from rillbase_native import Filter, Projection, Sort, Value
from tenants.data_plane import Call
from tenants.reading import (
    as_object,
    canonical,
    integer,
    parameters,
    read_body,
    refusing,
)

MEMBERS = ("filter", "sort", "projection", "offset", "limit", "cursor")
MAX_OFFSET = 100_000
_DIGITS = re.compile(r"[0-9]{1,9}\Z")


async def query(call: Call) -> Answer:
    """POST query."""
    name = collection_name(call, READ)
    parameters(call)
    body = as_object(await read_body(call), MEMBERS)
    return await _answer(call, name, _query(body))


async def query_by_url(call: Call) -> Answer:
    """GET documents."""
    name = collection_name(call, READ)
    return await _answer(call, name, _query(from_url(parameters(call, *MEMBERS))))


async def count(call: Call) -> Answer:
    """POST count."""
    name = collection_name(call, READ)
    parameters(call)
    body = as_object(await read_body(call), ("filter",))
    with refusing():
        wanted = Filter.parse(body.get("filter"))
    found = await queries.count(call.tenant.id, name, wanted, call.principal)
    return Answer(200, b'{"count":%d}' % found)


async def explain(call: Call) -> Answer:
    """POST explain."""
    name = collection_name(call, READ)
    parameters(call)
    if call.principal.obeys_access_rules:
        raise Forbidden("End users cannot see how queries are answered.")
    wanted = _query(as_object(await read_body(call), MEMBERS))
    return Answer(200, to_json(await explain_query(call.tenant.id, name, wanted)))


async def _answer(call: Call, name: str, wanted: Query) -> Answer:
    selected = await queries.select(call.tenant.id, name, wanted, call.principal)
    page = selected.page(canonical=canonical(call))
    cursor = to_json(page.next_cursor)
    return Answer(200, b'{"items":' + page.items + b',"next_cursor":' + cursor + b"}")


def _query(body: Value) -> Query:
    with refusing():
        wanted = Filter.parse(body.get("filter"))
        sort = Sort.parse(body.get("sort"), wanted)
        projection = body.get("projection")
        shown = None
        if projection is not None and not projection.is_null:
            shown = Projection.parse(projection)
    cursor = body.get("cursor")
    if cursor is not None and not cursor.is_null and cursor.kind != "string":
        raise InvalidBody(errors=[FieldProblem("/cursor", "invalid", "A cursor is a string.")])
    return Query(
        filter=wanted,
        sort=sort,
        projection=shown,
        offset=integer(body.get("offset"), "offset", least=0, most=MAX_OFFSET, otherwise=0),
        limit=integer(body.get("limit"), "limit", least=1, most=MAX_LIMIT, otherwise=DEFAULT_LIMIT),
        cursor=None if cursor is None or cursor.is_null else cursor.text(),
    )


def from_url(given: dict[str, str]) -> Value:
    """Return the parameters as the body that they stand for."""
    parts = []
    for name, text in given.items():
        if name == "cursor":
            parts.append(b'"cursor":' + to_json(text))
            continue
        if name in ("offset", "limit") and not _DIGITS.match(text):
            problem = FieldProblem(name, "invalid", "A whole number is expected.")
            raise InvalidParameter(errors=[problem])
        with refusing(f"/{name}"):
            Value.parse(text.encode())
        parts.append(to_json(name) + b":" + text.encode())
    return as_object(b"{" + b",".join(parts) + b"}", MEMBERS)
