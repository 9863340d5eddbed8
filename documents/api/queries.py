"""Queries for documents."""

from __future__ import annotations

import re

from data_plane.calls import Call
from data_plane.http import CallResponse
from data_plane.request_reader import (
    as_object,
    canonical,
    integer,
    parameters,
    read_body,
    refusing,
)
from documents.api.query_output import file_of, query_output
from documents.api.requests import (
    READ,
    collection_name,
)
from documents.store import queries
from documents.store.explain import explain as explain_query
from documents.store.groups import MAX_GROUPED, GroupQuery, group
from documents.store.queries import DEFAULT_LIMIT, MAX_LIMIT, DocumentQuery
from foundation.api.rendering import to_json
from foundation.errors import (
    FieldProblem,
    Forbidden,
    InvalidBody,
    InvalidGroup,
    InvalidLookup,
    InvalidParameter,
)
from rillbase_native import Filter, Group, Lookups, Projection, Sort, Value

MEMBERS = ("filter", "sort", "projection", "offset", "limit", "cursor", "group", "lookup")
MAX_OFFSET = 100_000
_NOT_WITH_GROUPS = {
    "projection": InvalidGroup,
    "cursor": InvalidGroup,
    "lookup": InvalidLookup,
}
_DIGITS = re.compile(r"[0-9]{1,9}\Z")


async def query(call: Call) -> CallResponse:
    """POST query."""
    name = collection_name(call, READ)
    parameters(call)
    return await _answer(call, name, as_object(await read_body(call), MEMBERS))


async def query_by_url(call: Call) -> CallResponse:
    """GET documents."""
    name = collection_name(call, READ)
    return await _answer(call, name, from_url(parameters(call, *MEMBERS)))


async def count(call: Call) -> CallResponse:
    """POST count."""
    name = collection_name(call, READ)
    parameters(call)
    body = as_object(await read_body(call), ("filter",))
    with refusing():
        query_filter = Filter.parse(body.get("filter"))
    number, notices = await queries.count(call.tenant.id, name, query_filter, call.principal)
    return CallResponse(200, b'{"count":%d' % number + notices.member() + b"}")


async def explain(call: Call) -> CallResponse:
    """POST explain."""
    name = collection_name(call, READ)
    parameters(call)
    if call.principal.obeys_access_rules:
        raise Forbidden("End users cannot see query plans.")
    body = as_object(await read_body(call), MEMBERS)
    if (grouped := read_group(body)) is None:
        explained_query = _query(body)
    else:
        # Groups are made of all matching documents, read in any order.
        explained_query = DocumentQuery(
            _groups(body, grouped).filter, Sort.parse(None), limit=MAX_GROUPED
        )
    return CallResponse(200, to_json(await explain_query(call.tenant.id, name, explained_query)))


async def _answer(call: Call, name: str, body: Value) -> CallResponse:
    requested = query_output(call)
    if (grouped := read_group(body)) is not None:
        groups = await group(call.tenant.id, name, _groups(body, grouped), call.principal)
        if requested is not None:
            return await file_of(call, name, await groups.rows(canonical=True), requested)
        rows = await groups.rows(canonical=canonical(call))
        return CallResponse(200, b'{"rows":' + rows + groups.notices.member() + b"}")
    document_query = _query(body)
    selected = await queries.select(call.tenant.id, name, document_query, call.principal)
    if requested is not None:
        return await file_of(call, name, (await selected.page(canonical=True)).items, requested)
    page = await selected.page(canonical=canonical(call))
    cursor = to_json(page.next_cursor)
    text = b'{"items":' + page.items + b',"next_cursor":' + cursor
    return CallResponse(200, text + page.notices.member() + b"}")


def _query(body: Value) -> DocumentQuery:
    with refusing():
        query_filter = Filter.parse(body.get("filter"))
        sort = Sort.parse(body.get("sort"), query_filter)
        projection = body.get("projection")
        shown = None
        if projection is not None and not projection.is_null:
            shown = Projection.parse(projection)
    cursor = body.get("cursor")
    if cursor is not None and not cursor.is_null and cursor.kind != "string":
        raise InvalidBody(errors=[FieldProblem("/cursor", "invalid", "A cursor must be a string.")])
    return DocumentQuery(
        filter=query_filter,
        sort=sort,
        projection=shown,
        offset=_offset(body),
        limit=_limit(body),
        cursor=None if cursor is None or cursor.is_null else cursor.text(),
        lookups=read_lookups(body),
    )


def read_lookups(body: Value) -> Lookups | None:
    """Return the lookups of the query, if there are any."""
    lookup = body.get("lookup")
    if lookup is None or lookup.is_null:
        return None
    with refusing():
        return Lookups.parse(lookup)


def read_group(body: Value) -> Group | None:
    """Return the grouping of the query, if there is one."""
    given = body.get("group")
    if given is None or given.is_null:
        return None
    for name, refusal in _NOT_WITH_GROUPS.items():
        other = body.get(name)
        if other is not None and not other.is_null:
            problem = FieldProblem(f"/{name}", refusal.code, "Not allowed together with `group`.")
            raise refusal(errors=[problem])
    with refusing():
        return Group.parse(given)


def read_group_sort(body: Value, grouped: Group) -> Sort | None:
    """Return the order of groups; None: ordered by the values of their fields."""
    order = body.get("sort")
    if order is None or order.is_null:
        return None
    with refusing():
        sort = Sort.parse(order)
        grouped.check_sort(sort)
    return sort


def _groups(body: Value, grouped: Group) -> GroupQuery:
    with refusing():
        query_filter = Filter.parse(body.get("filter"))
    return GroupQuery(
        filter=query_filter,
        group=grouped,
        sort=read_group_sort(body, grouped),
        offset=_offset(body),
        limit=_limit(body),
    )


def _offset(body: Value) -> int:
    return integer(body.get("offset"), "offset", minimum=0, maximum=MAX_OFFSET, default=0)


def _limit(body: Value) -> int:
    return integer(body.get("limit"), "limit", minimum=1, maximum=MAX_LIMIT, default=DEFAULT_LIMIT)


def from_url(given: dict[str, str]) -> Value:
    """Return the parameters as the equivalent body."""
    parts = []
    for name, text in given.items():
        if name == "cursor":
            parts.append(b'"cursor":' + to_json(text))
            continue
        if name in ("offset", "limit") and not _DIGITS.match(text):
            problem = FieldProblem(name, "invalid", "Expected an integer.")
            raise InvalidParameter(errors=[problem])
        with refusing(f"/{name}"):
            Value.parse(text.encode())
        parts.append(to_json(name) + b":" + text.encode())
    return as_object(b"{" + b",".join(parts) + b"}", MEMBERS)
