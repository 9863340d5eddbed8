"""The subjects of questions: a subscription of this process, or a hypothetical one."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import cast
from uuid import UUID

from documents.store import facts, queries
from documents.store.access import CallerAccess, access_of, bind
from documents.store.facts import CollectionFacts
from documents.store.queries import DocumentQuery
from foundation.errors import Forbidden, NotFound, Unavailable
from foundation.json_types import JsonObject, JsonValue
from foundation.names import NAME_PATTERN
from realtime.delivery_trace.evidence import Subject, TracedVersion
from realtime.grid.layout import read_served
from realtime.hub.query_subscriptions import QuerySubscription
from realtime.registration.subscribe_request import QuerySubscribeRequest
from rillbase_native import Filter, Value, id_key

_NAME = re.compile(rf"{NAME_PATTERN}\Z")


async def of_subscription(watched: QuerySubscription) -> Subject:
    """Return the subject of a subscription, under the current rules."""
    collection = await facts.find(watched.subscriber.tenant.id, watched.request.collection)
    access = access_of(collection, watched.subscriber.principal)

    async def ask_hub(traced: TracedVersion) -> JsonObject:
        trace = watched.running.hub.trace(
            watched.number,
            traced.key,
            traced.version,
            xid=traced.xid,
            body=traced.body,
            times_ms=traced.times_ms,
        )
        return {} if trace is None else cast("JsonObject", json.loads(trace))

    return Subject(
        collection,
        watched.request.filter,
        _read_rule(access),
        access is not None,
        watched.running.grid,
        ask_hub,
    )


async def of_query(
    tenant_id: UUID,
    request: QuerySubscribeRequest,
    claims: Mapping[str, JsonValue] | None,
    *,
    is_ruled: bool,
) -> Subject:
    """Return the subject of a hypothetical subscription of a user with these claims."""
    if not _NAME.match(request.collection):
        raise NotFound(f"The collection {request.collection!r} does not exist.")
    collection = await facts.find(tenant_id, request.collection)
    access = bind(collection, claims) if is_ruled else None
    rule, served = _read_rule(access), await read_served()
    # Dedicated grids receive only writes to PostgreSQL.
    own = [] if collection.is_native else served.of(tenant_id)
    grids = own or served.of(collection.backend)
    if not grids:
        raise Unavailable("The grid has not started yet.", headers={"Retry-After": "1"})

    async def ask_hub(traced: TracedVersion) -> JsonObject:
        grouped = request.group is not None
        if traced.body is None or not request.has_window or grouped:
            return {"sorted": False, "grouped": grouped}
        return await _locate_in_window(collection, request, rule, traced)

    return Subject(collection, request.filter, rule, is_ruled, grids[-1], ask_hub)


async def _locate_in_window(
    collection: CollectionFacts,
    request: QuerySubscribeRequest,
    rule: Filter | None,
    traced: TracedVersion,
) -> JsonObject:
    """Locate a document relative to a window, by reading the rows up to its end."""
    limit = queries.MAX_LIMIT if request.limit is None else request.offset + request.limit
    readable = request.filter if rule is None else request.filter.and_(rule)
    query = DocumentQuery(readable, request.sort, limit=limit)
    selected = await queries.select(collection.tenant_id, collection.name, query, None)
    items = json.loads((await selected.page(canonical=True)).items)
    keys = [id_key(Value.parse(json.dumps(item["id"]).encode())) for item in items]
    rows = max(0, len(keys) - request.offset)
    position = keys.index(traced.key) if traced.key in keys else None
    inside = position is not None and position >= request.offset
    return {
        "sorted": True,
        "offset": request.offset,
        "limit": request.limit,
        "rows": rows,
        "held_version": traced.version if inside else None,
        "held_index": position - request.offset if position is not None and inside else None,
        "place": "inside" if inside else "behind" if position is None else "before",
    }


def _read_rule(access: CallerAccess | None) -> Filter | None:
    if access is None:
        return None
    try:
        return access.require("read")
    except Forbidden:
        return None
