"""Create, change, rebuild and drop aggregates.

The row is authoritative. The storage node follows: by a task after each change, and by the first
call that finds an aggregate missing there. A transaction never waits for the node.
"""

from __future__ import annotations

import json
from typing import TypedDict
from uuid import UUID

from django.db import transaction

from aggregates import node
from aggregates.definitions.checks import check
from aggregates.definitions.describe import definition_of, describe
from aggregates.models import Aggregate
from documents.collections.actions import find_by_name
from foundation.errors import FieldProblem, InvalidBody, NameTaken, NotFound
from foundation.json_types import JsonObject
from foundation.refusals import as_api_error
from foundation.tasks import run_after_commit
from rillbase_native import Filter, QueryError, Value
from storage_engine.node import admin
from tenants import audit
from tenants.models import Tenant
from tenants.principals import Principal
from tenants.quotas import ensure_room

KEEP_TASK, DROP_TASK = "aggregates.keep", "aggregates.drop"
#: A client that added events while the aggregate was being dropped may have re-created it in the
#: node. After this time, no process still has the aggregate cached.
AGAIN_AFTER_S = 10.0
PARTS = ("dimensions", "time", "measures", "rollups")


class ViewSourceValues(TypedDict):
    """The collection of a view, as given in a checked body."""

    collection: str
    filter: JsonObject | None


class AggregateValues(TypedDict, total=False):
    """An aggregate, as given in a checked body."""

    name: str
    dimensions: list[str]
    time: JsonObject | None
    measures: JsonObject
    rollups: list[list[str]]
    source: ViewSourceValues | None
    retention: str | None


def do_create(principal: Principal | None, tenant: Tenant, values: AggregateValues) -> Aggregate:
    """Create an aggregate. A view is filled by the process that follows collections."""
    definition = {name: values[name] for name in PARTS}  # type: ignore[literal-required]
    check(definition, values["retention"])
    # This locks the tenant's row, so the name cannot be taken between the check and the insert.
    ensure_room(tenant, "aggregates", Aggregate.objects.all())
    if Aggregate.objects.filter(name=values["name"]).exists():
        raise NameTaken(f"An aggregate named {values['name']!r} already exists.")
    aggregate = Aggregate(
        tenant=tenant,
        name=values["name"],
        definition=json.dumps(definition),
        retention=values["retention"] or "",
    )
    if values["source"] is not None:
        _follow(aggregate, values["source"])
    aggregate.save()
    _schedule_sync(aggregate)
    _record(principal, "aggregate.created", aggregate, after=describe(aggregate))
    return aggregate


def _follow(aggregate: Aggregate, source: ViewSourceValues) -> None:
    """Make the aggregate a view."""
    try:
        collection = find_by_name(source["collection"])
    except NotFound:
        detail = "The collection does not exist."
        problem = FieldProblem("/source/collection", "not_found", detail)
        raise InvalidBody(detail, errors=[problem]) from None
    aggregate.collection_id, aggregate.collection_name = collection.pk, collection.name
    aggregate.state = Aggregate.State.BUILDING
    if source["filter"] is not None:
        aggregate.filter = _filter(source["filter"])


def _filter(definition: JsonObject) -> str:
    """Return a filter's text, or raise if its meaning depends on the time of evaluation."""
    try:
        value = Value.parse(json.dumps(definition).encode())
        Filter.parse(value, pointer="/source/filter").check_live()
    except QueryError as error:
        raise as_api_error(error) from None
    return value.ejson(canonical=True).decode()


def do_change(principal: Principal | None, aggregate: Aggregate, values: AggregateValues) -> None:
    """Change a locked aggregate. Its rows are rebuilt; queries read the old ones until then."""
    before = describe(aggregate)
    definition = definition_of(aggregate)
    definition |= {name: value for name, value in values.items() if name in PARTS}  # type: ignore[misc]
    retention = values.get("retention", aggregate.retention or None)
    check(definition, retention)
    aggregate.definition, aggregate.retention = json.dumps(definition), retention or ""
    _build(aggregate)
    _record(principal, "aggregate.updated", aggregate, before=before, after=describe(aggregate))


def do_rebuild(principal: Principal | None, aggregate: Aggregate) -> None:
    """Rebuild a locked aggregate's rows from the retained data; queries read the old ones
    meanwhile.
    """
    _build(aggregate)
    _record(principal, "aggregate.rebuilt", aggregate)


def _build(aggregate: Aggregate) -> None:
    aggregate.build_wanted += 1
    aggregate.building = 0
    aggregate.documents_read = 0
    aggregate.state, aggregate.error = Aggregate.State.BUILDING, ""
    aggregate.save_next_version()
    _schedule_sync(aggregate)


def do_delete(principal: Principal | None, aggregate: Aggregate) -> None:
    """Drop a locked aggregate with its rows.

    The node is notified as soon as this has committed, so that subscribers learn of it at once; the
    task covers the case that the node does not respond.
    """
    before, arguments = describe(aggregate), _arguments(aggregate)
    tenant_id, aggregate_id = aggregate.tenant_id, aggregate.pk
    for due_in_s in (0.0, AGAIN_AFTER_S):
        run_after_commit(DROP_TASK, arguments, tenant_id=tenant_id, due_in_s=due_in_s)
    _record(principal, "aggregate.deleted", aggregate, before=before)
    aggregate.delete()
    transaction.on_commit(lambda: _drop_now(tenant_id, aggregate_id), robust=True)


def _drop_now(tenant_id: UUID, aggregate_id: UUID) -> None:
    if admin.is_configured():
        node.drop(tenant_id, aggregate_id)


def _schedule_sync(aggregate: Aggregate) -> None:
    """Schedule the node's update, unless the collection's follower makes it."""
    if not aggregate.is_view:
        run_after_commit(KEEP_TASK, _arguments(aggregate), tenant_id=aggregate.tenant_id)


def _arguments(aggregate: Aggregate) -> JsonObject:
    return {"tenant": str(aggregate.tenant_id), "aggregate": str(aggregate.pk)}


def _record(
    principal: Principal | None,
    action: str,
    aggregate: Aggregate,
    *,
    before: JsonObject | None = None,
    after: JsonObject | None = None,
) -> None:
    target = audit.AuditTarget("aggregate", str(aggregate.pk))
    audit.record(principal, action, target, before=before, after=after)
