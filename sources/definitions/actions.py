"""Declare, change, rebuild and remove sources.

The row contains the desired state, which the follower process (`sources.following`) establishes.
Changing a source requires the exclusive lock on its collection, so a removed source writes no more
documents, and while there is a source, no other writer does.
"""

from __future__ import annotations

from typing import TypedDict

from django.db import models
from django.utils import timezone

from documents.collections.actions import check_ttl, has_documents, lock_by_name, set_source
from documents.models import Collection
from foundation.errors import Conflict, NotFound, NotSupportedByBackend
from foundation.json_types import JsonObject
from sources.connection import parse_target, seal_url
from sources.definitions.describe import configured_fields
from sources.definitions.probe import probe
from sources.models import Source
from sources.upstream.catalog import TableSpec
from tenants import audit
from tenants.models import Tenant
from tenants.principals import Principal
from tenants.quotas import ensure_room


class SourceValues(TypedDict, total=False):
    """The validated fields of a source."""

    connection: str
    paused: bool
    schema: str
    table: str
    key: list[str] | None
    columns: list[str] | None


def present() -> models.QuerySet[Source]:
    """Return the sources of the tenant in scope, without those being removed."""
    return Source.objects.exclude(desired_state=Source.DesiredState.REMOVED)


def listed() -> models.QuerySet[Source]:
    """Return the sources of the tenant in scope, including those being removed."""
    return Source.objects.all()


def find_of(collection: Collection) -> Source:
    """Return a collection's source, or raise `NotFound`."""
    source = present().filter(collection_id=collection.pk).first()
    if source is None:
        raise NotFound("The collection has no source.")
    return source


def lock_of(collection: Collection) -> Source:
    """Return a locked collection's source, locked for the rest of the transaction."""
    rows = present().select_for_update(of=("self",)).filter(collection_id=collection.pk)
    source = rows.first()
    if source is None:
        raise NotFound("The collection has no source.")
    return source


def do_create(
    principal: Principal | None, tenant: Tenant, collection_name: str, values: SourceValues
) -> Source:
    """Attach a source to a collection. From then on only the source writes its documents."""
    target = parse_target(values["connection"])
    spec = _table_spec(values)
    # This may take seconds, so it runs before any lock is taken.
    table = probe(target, spec)
    collection = lock_by_name(collection_name)
    ensure_room(tenant, "sources", present())
    if collection.source_id is not None:
        raise Conflict("The collection already has a source.")
    if collection.is_native:
        raise NotSupportedByBackend("A native collection cannot follow a table.")
    if collection.move_stage:
        raise Conflict("The collection moves to another backend.")
    if has_documents(collection.pk):
        raise Conflict("The collection has documents; only an empty collection can get a source.")
    source = Source(
        tenant=tenant,
        collection_id=collection.pk,
        collection_name=collection.name,
        connection=target.shown,
        schema_name=spec.schema,
        table_name=spec.table,
        key=list(table.shape.key),
        columns=values["columns"],
        desired_state=_desired_state(values["paused"]),
    )
    source.sealed_connection = seal_url(values["connection"], source.pk)
    check_ttl(collection.ttl, source.pk)
    source.save()
    set_source(collection, source.pk)
    _record(principal, "source.created", source, after=configured_fields(source))
    return source


def do_change(principal: Principal | None, source: Source, values: SourceValues) -> None:
    """Change a locked source."""
    old_fields = configured_fields(source)
    if "connection" in values:
        target = parse_target(values["connection"])
        source.connection = target.shown
        source.sealed_connection = seal_url(values["connection"], source.pk)
    if "paused" in values:
        source.desired_state = _desired_state(values["paused"])
    source.save_next_version()
    _record(principal, "source.updated", source, before=old_fields, after=configured_fields(source))


def do_rebuild(principal: Principal | None, source: Source) -> None:
    """Copy a locked source's table again, accepting changed column types."""
    source.copies_wanted += 1
    source.shape = ""
    source.save_next_version()
    _record(principal, "source.rebuilt", source)


def do_delete(principal: Principal | None, collection: Collection, source: Source) -> None:
    """Remove a locked collection's source. The documents stay and become writable.

    It is listed until what it created in its owner's database has been dropped.
    """
    source.desired_state = Source.DesiredState.REMOVED
    source.state, source.condition, source.detail = Source.State.REMOVING, "", ""
    source.removing_since = timezone.now()
    source.fence += 1
    source.save_next_version()
    set_source(collection, None)
    _record(principal, "source.deleted", source, before=configured_fields(source))


def _table_spec(values: SourceValues) -> TableSpec:
    key, columns = values["key"], values["columns"]
    return TableSpec(
        values["schema"],
        values["table"],
        None if key is None else tuple(key),
        None if columns is None else tuple(columns),
    )


def _desired_state(paused: bool) -> Source.DesiredState:  # noqa: FBT001 -- the field's value
    return Source.DesiredState.PAUSED if paused else Source.DesiredState.RUNNING


def _record(
    principal: Principal | None,
    action: str,
    source: Source,
    *,
    before: JsonObject | None = None,
    after: JsonObject | None = None,
) -> None:
    audit.record(
        principal, action, audit.AuditTarget("source", str(source.pk)), before=before, after=after
    )
