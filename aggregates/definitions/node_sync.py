"""Keeps the storage node in step with the aggregates of the control plane.

Both tasks may run twice, late, or concurrently. A change becomes a new generation, which the node
fills with the events that it retains; when it is full, queries are switched to it. If another run
has replaced a generation meanwhile, it is gone, and the next run starts over.
"""

from __future__ import annotations

from uuid import UUID

from aggregates import node
from aggregates.definitions.actions import DROP_TASK, KEEP_TASK
from aggregates.definitions.describe import for_node
from aggregates.models import Aggregate
from foundation.scope import scoped
from foundation.tasks import run_after_commit, task
from foundation.valkey_sockets import ValkeySockets
from storage_engine.node import admin

#: How long to wait before checking again on a generation that is being filled.
CHECK_AGAIN_S = 1.0


@task(name=DROP_TASK)
def drop(*, tenant: str, aggregate: str) -> None:
    """Remove a dropped aggregate's rows."""
    if admin.is_configured():
        node.drop(UUID(tenant), UUID(aggregate))


@task(name=KEEP_TASK)
def sync(*, tenant: str, aggregate: str) -> None:
    """Make the node hold an aggregate as its row defines it."""
    tenant_id, aggregate_id = UUID(tenant), UUID(aggregate)
    row = _row(tenant_id, aggregate_id)
    if (
        row is None
        or row.is_view
        or not admin.is_configured()
        or row.build_done == row.build_wanted
    ):
        return
    with admin.tenant_connection(tenant_id) as connection:
        generation = 0 if connection is None else _advance_build(connection, row)
    if generation is None:
        arguments = {"tenant": tenant, "aggregate": aggregate}
        with scoped(tenant_id=tenant_id):
            run_after_commit(
                KEEP_TASK, dict(arguments), tenant_id=tenant_id, due_in_s=CHECK_AGAIN_S
            )
        return
    _note(row, build_done=row.build_wanted, generation=generation, building=0, state="active")


def _advance_build(connection: ValkeySockets, row: Aggregate) -> int | None:
    """Advance the build by one step. Return the generation that queries see when it is done."""
    definition = for_node(row)
    if row.build_done == 0:
        generation = node.define(connection, row.pk, definition)
        if generation is not None and generation == node.info(connection, row.pk).generation:
            return generation
    building = row.building
    if not building:
        building = node.replace(connection, row.pk, definition)
        _note(row, building=building)
    if node.info(connection, row.pk).generation == building:
        return building
    refused = node.switch(connection, row.pk, building)
    if refused == node.NO_GENERATION:
        _note(row, building=0)
    return building if refused is None else None


def _row(tenant_id: UUID, aggregate_id: UUID) -> Aggregate | None:
    with scoped(tenant_id=tenant_id):
        return Aggregate.objects.filter(pk=aggregate_id).first()


def _note(row: Aggregate, **values: object) -> None:
    """Record the progress of a build, unless a newer build has been requested."""
    with scoped(tenant_id=row.tenant_id):
        unchanged = Aggregate.objects.filter(pk=row.pk, build_wanted=row.build_wanted)
        unchanged.update(**values)
