"""Creates missing sample collections of a tenant, and fills those that were never written to."""

from __future__ import annotations

import json
from typing import cast
from uuid import UUID

from django.db import connections

from documents.collections import actions
from documents.collections.declarations import read_declarations
from documents.collections.forms import CollectionCreation
from documents.samples.cities import cities
from documents.samples.people import people
from documents.samples.products import products
from documents.samples.sample import SampleCollection
from documents.samples.tasks import tasks
from documents.samples.todos import todos
from documents.store.sync import write_all
from documents.store.write import WriteCall
from foundation.api.bodies import read_body
from foundation.scope import scoped
from rillbase_native import Operation, Operations, Value
from tenants.models import Tenant


def load_samples(tenant_id: UUID) -> list[str]:
    """Load what is missing. Return the names of the collections that were filled."""
    samples = [tasks(), todos(), people(), cities(), products()]
    with scoped(tenant_id=tenant_id):
        empty = [sample for sample in samples if _is_empty(_ensure(tenant_id, sample))]
    write_all([_write(tenant_id, sample) for sample in empty])
    return [sample.name for sample in empty]


def _ensure(tenant_id: UUID, sample: SampleCollection) -> UUID:
    """Return the id of the sample's collection, creating it if it is missing."""
    collection = actions.active().filter(name=sample.name).first()
    if collection is not None:
        return collection.pk
    values = cast("actions.CollectionValues", read_body(CollectionCreation, sample.declaration))
    declarations = read_declarations(_text(sample.declaration))
    tenant = Tenant.objects.select_related("plan", "quota").get(pk=tenant_id)
    collection_row, _ = actions.do_create(None, tenant, values, declarations)
    return collection_row.pk


def _is_empty(collection_id: UUID) -> bool:
    """Return whether a collection was never written to; deleted documents leave tombstones."""
    with connections["default"].cursor() as cursor:
        cursor.execute(
            "SELECT NOT EXISTS (SELECT FROM documents_document WHERE collection_id = %s)",
            (collection_id,),
        )
        (empty,) = cursor.fetchone()
    return bool(empty)


def _write(tenant_id: UUID, sample: SampleCollection) -> WriteCall:
    inserts = [Operation.insert(Value.parse(_text(document))) for document in sample.documents]
    return WriteCall(tenant_id, sample.name, Operations(inserts))


def _text(value: object) -> bytes:
    return json.dumps(value).encode()
