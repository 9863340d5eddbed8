"""Create, change and drop collections.

A change to a collection holds its lock exclusively, taken before the row is locked: all code takes
the two in this order. `write_version` grows with each change, so no writer uses an older definition
(`documents.store.locks`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict
from uuid import UUID

from django.db import connections, models

from documents.backend import Backend
from documents.collections.declarations import Declarations
from documents.collections.describe import describe
from documents.collections.field_names import of_collection
from documents.collections.indexes import (
    IndexDeclaration,
    changes,
    declared_indexes,
    fields_of,
    is_declared,
    ttl_index,
)
from documents.collections.moves import begin_move, cancel_move
from documents.collections.node_upkeep import drop_after_commit, install_after_commit
from documents.models import Collection, Index
from documents.store.locks import lock_exclusively
from documents.technique import DeclaredTechnique
from foundation.errors import Conflict, FieldProblem, InvalidBody, NameTaken, NotFound
from foundation.json_types import JsonObject
from foundation.tasks import run_after_commit
from tenants import audit
from tenants.models import Tenant
from tenants.principals import Principal
from tenants.quotas import ensure_room

BACKFILL_TASK = "documents.collections.backfill"
DROP_INDEX_TASK = "documents.collections.drop_index"
DROP_TASK = "documents.collections.drop"


class CollectionValues(TypedDict, total=False):
    """A collection as in a validated body, except for what `Declarations` contains."""

    name: str
    indexes: list[dict[str, object]]
    ttl: JsonObject | None
    backend: str


def active() -> models.QuerySet[Collection]:
    """Return the collections of the tenant in scope."""
    return Collection.objects.filter(state=Collection.State.ACTIVE)


def visible_indexes() -> models.QuerySet[Index]:
    """Return the indexes of the tenant in scope as callers see them: including those that are being
    built or have failed, without replacements.
    """
    rows = Index.objects.filter(replaces=None).exclude(state=Index.State.DROPPING)
    return rows.order_by("number")


def indexes_of(collection: Collection) -> list[Index]:
    """Return a collection's visible indexes."""
    return list(visible_indexes().filter(collection=collection))


def find_by_name(name: str) -> Collection:
    """Return the tenant's collection, or raise `NotFound`."""
    collection = active().filter(name=name).first()
    if collection is None:
        raise NotFound("The collection does not exist.")
    return collection


def lock_by_name(name: str) -> Collection:
    """Return the tenant's collection, locked exclusively until the transaction ends."""
    identity = find_by_name(name).pk
    lock_exclusively(identity)
    collection = active().select_for_update(of=("self",)).filter(pk=identity).first()
    if collection is None:
        raise NotFound("The collection does not exist.")
    return collection


def do_create(
    principal: Principal | None,
    tenant: Tenant,
    values: CollectionValues,
    declarations: Declarations,
) -> tuple[Collection, list[Index]]:
    """Create a collection. Its indexes are ready immediately, because it is empty."""
    backend = values.get("backend", Backend.POSTGRES)
    is_native = backend == Backend.NATIVE
    declared = declared_indexes(values.get("indexes", []), is_native=is_native)
    # Locks the tenant's row, so no concurrent call can insert the same name.
    ensure_room(tenant, "collections", active())
    if active().filter(name=values["name"]).exists():
        raise NameTaken(f"There is a collection {values['name']!r} already.")
    _check_field(values["name"], declarations)
    ttl = values.get("ttl")
    collection = Collection.objects.create(
        name=values["name"],
        schema=declarations.schema,
        access_rules=declarations.access_rules,
        ttl=ttl,
        backend=backend,
    )
    indexes = _add_indexes(collection, [*declared, *ttl_index(ttl)], ready=True)
    _record(principal, "collection.created", collection, after=describe(collection, indexes))
    return collection, indexes


def _check_field(name: str, declarations: Declarations) -> None:
    """Reject a schema if its collection's GraphQL field already belongs to another collection."""
    if declarations.schema is None:
        return
    others = active().exclude(schema=None).exclude(name=name).values_list("name", flat=True)
    field = of_collection(name)
    for other in others:
        if of_collection(other) == field:
            raise NameTaken(f"The collection {other!r} already has the field {field!r} in GraphQL.")


def do_change(
    principal: Principal | None,
    collection: Collection,
    values: CollectionValues,
    declarations: Declarations,
) -> list[Index]:
    """Change a locked collection. Return its indexes after the change."""
    present = indexes_of(collection)
    before = describe(collection, present)
    if "backend" in values:
        _change_backend(collection, present, Backend(values["backend"]))
    if collection.move_stage and ("indexes" in values or "ttl" in values):
        raise Conflict("Indexes and TTL cannot be changed while the collection moves.")
    dropped, added = _index_changes(collection, present, values)
    if "schema" in declarations.names:
        _check_field(collection.name, declarations)
        collection.schema = declarations.schema
    if "access_rules" in declarations.names:
        collection.access_rules = declarations.access_rules
        collection.rules_version += 1
    if "ttl" in values:
        check_ttl(values["ttl"], collection.source_id)
        collection.ttl = values["ttl"]
    for index in dropped:
        drop_index(collection, index)
    # Writes to a native collection continue until the node has the new definition.
    ready = not collection.is_native and not has_documents(collection.pk)
    _add_indexes(collection, added, ready=ready)
    _install_next_version(collection)
    indexes = indexes_of(collection)
    _record(
        principal,
        "collection.updated",
        collection,
        before=before,
        after=describe(collection, indexes),
    )
    return indexes


def _change_backend(collection: Collection, present: Sequence[Index], backend: Backend) -> None:
    """Let a locked collection move to a backend, or stay in the present one."""
    if backend == collection.backend:
        cancel_move(collection)
        return
    begin_move(collection, present, backend)
    replacements = Index.objects.filter(collection=collection, state=Index.State.BUILDING)
    for replacement in replacements.exclude(replaces=None):
        _retire(collection, replacement)


def do_delete(principal: Principal | None, collection: Collection) -> None:
    """Drop a locked collection. Its name is free at once; its data is removed in the background."""
    before = describe(collection, indexes_of(collection))
    collection.state = Collection.State.DROPPING
    collection.write_version += 1
    collection.save_next_version()
    drop_after_commit(collection)
    run_after_commit(DROP_TASK, {"collection": str(collection.pk)}, tenant_id=collection.tenant_id)
    _record(principal, "collection.deleted", collection, before=before)


def check_ttl(ttl: JsonObject | None, source_id: UUID | None) -> None:
    """Reject a TTL for a collection whose documents follow the rows of a source."""
    if ttl is not None and source_id is not None:
        detail = (
            "Not allowed for a collection with a source: its documents are deleted with their rows."
        )
        raise InvalidBody(detail, errors=[FieldProblem("/ttl", "has_source", detail)])


def set_source(collection: Collection, source_id: UUID | None) -> None:
    """Make a source the only writer of a locked collection; None: no such restriction."""
    collection.source_id = source_id
    collection.write_version += 1
    collection.save_next_version()


def drop_index(collection: Collection, index: Index) -> None:
    """Take an index and its replacement out of use."""
    for replacement in index.replacements.all():
        _retire(collection, replacement)
    _retire(collection, index)


def replace_index(collection: Collection, index: Index, technique: DeclaredTechnique) -> Index:
    """Build an automatic index of a locked collection with another technique, beside the present
    one.
    """
    declaration = IndexDeclaration(index.name, fields_of(index))
    replacement = _add_index(collection, declaration, ready=False, replaces=index, chosen=technique)
    _install_next_version(collection)
    return replacement


def end_replacement(collection: Collection, replacement: Index) -> None:
    """Let a replacement that has been built take the place of the other index, or drop it if it has
    failed.
    """
    replaced = replacement.replaces
    if replaced is None:
        return
    if replacement.state == Index.State.READY:
        # Two visible indexes cannot have the same name.
        _retire(collection, replaced)
        replacement.replaces = None
        replacement.save(update_fields=["replaces"])
    else:
        _retire(collection, replacement)
        # Another one is built only if the gain lasts for another day.
        replaced.advice = None
        replaced.save(update_fields=["advice"])


def _install_next_version(collection: Collection) -> None:
    collection.write_version += 1
    collection.save_next_version()
    install_after_commit(collection)


def _retire(collection: Collection, index: Index) -> None:
    """Take an index out of use; its entries are removed in the background."""
    index.state, index.replaces = Index.State.DROPPING, None
    index.save(update_fields=["state", "replaces"])
    arguments: JsonObject = {"index": index.number}
    run_after_commit(DROP_INDEX_TASK, arguments, tenant_id=collection.tenant_id)


def _index_changes(
    collection: Collection, present: Sequence[Index], values: CollectionValues
) -> tuple[list[Index], list[IndexDeclaration]]:
    """Compare callers' indexes and internal ones separately: a body may change either, both or
    none.
    """
    declared = [index for index in present if is_declared(index)]
    own = [index for index in present if not is_declared(index)]
    dropped: list[Index] = []
    added: list[IndexDeclaration] = []
    if "indexes" in values:
        declarations = declared_indexes(values["indexes"], is_native=collection.is_native)
        dropped, added = changes(declared, declarations)
        _name_techniques(collection, declared, declarations)
    if "ttl" in values:
        removed, created = changes(own, ttl_index(values["ttl"]))
        dropped, added = [*dropped, *removed], [*added, *created]
    return dropped, added


def _name_techniques(
    collection: Collection, present: Sequence[Index], declarations: Sequence[IndexDeclaration]
) -> None:
    """Record the declared techniques of indexes that remain, since `auto` is one of the others."""
    for declaration in declarations:
        for index in present:
            if declaration.is_met_by(index) and index.technique != declaration.technique:
                for replacement in index.replacements.all():
                    _retire(collection, replacement)
                index.chosen_technique = index.technique_in_use
                index.technique = declaration.technique
                index.advice = None
                index.save(update_fields=["technique", "chosen_technique", "advice"])


def _add_indexes(
    collection: Collection, declared: Sequence[IndexDeclaration], *, ready: bool
) -> list[Index]:
    return [_add_index(collection, declaration, ready=ready) for declaration in declared]


def _add_index(
    collection: Collection,
    declaration: IndexDeclaration,
    *,
    ready: bool,
    replaces: Index | None = None,
    chosen: DeclaredTechnique | None = None,
) -> Index:
    index = Index.objects.create(
        collection=collection,
        name=declaration.name,
        fields=[list(pair) for pair in declaration.fields],
        unique=declaration.unique,
        technique=declaration.technique,
        chosen_technique=chosen or "",
        replaces=replaces,
        state=Index.State.READY if ready else Index.State.BUILDING,
    )
    if not ready:
        arguments: JsonObject = {"tenant": str(collection.tenant_id), "index": index.number}
        run_after_commit(BACKFILL_TASK, arguments, tenant_id=collection.tenant_id)
    return index


def has_documents(collection_id: UUID) -> bool:
    """Return whether a collection in PostgreSQL has any document."""
    with connections["default"].cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM documents_document "
            "WHERE collection_id = %s AND body IS NOT NULL)",
            (collection_id,),
        )
        row = cursor.fetchone()
    return bool(row and row[0])


def _record(
    principal: Principal | None,
    action: str,
    collection: Collection,
    *,
    before: JsonObject | None = None,
    after: JsonObject | None = None,
) -> None:
    target = audit.AuditTarget("collection", str(collection.pk))
    audit.record(principal, action, target, before=before, after=after)
