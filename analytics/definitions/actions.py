"""Create, change and drop datasets. A task removes the files."""

from __future__ import annotations

import json
from typing import TypedDict

from analytics.definitions.checks import check_change, completed
from analytics.definitions.describe import describe
from analytics.definitions.removal import REMOVE_TASK
from analytics.locations import root
from analytics.models import Dataset
from analytics.table_definitions import IdKeyDefinition, TableDefinition, read_definition
from foundation.errors import NameTaken
from foundation.json_types import JsonObject
from foundation.tasks import run_after_commit
from tenants import audit
from tenants.models import Tenant
from tenants.principals import Principal
from tenants.quotas import ensure_room

#: By then running uploads and queries have ended or failed, since the dataset does not exist.
AGAIN_AFTER_S = 600.0


class DatasetValues(TypedDict, total=False):
    """The validated fields of a dataset."""

    name: str
    tables: dict[str, TableDefinition]
    id_keys: dict[str, IdKeyDefinition]
    retention_s: int


def do_create(principal: Principal | None, tenant: Tenant, values: DatasetValues) -> Dataset:
    """Create a dataset."""
    definition = completed({"tables": values["tables"], "id_keys": values["id_keys"]})
    root()
    # Locks the tenant's row, so no concurrent call can insert the same name.
    ensure_room(tenant, "datasets", Dataset.objects.all())
    if Dataset.objects.filter(name=values["name"]).exists():
        raise NameTaken(f"A dataset named {values['name']!r} already exists.")
    dataset = Dataset.objects.create(
        name=values["name"],
        definition=json.dumps(definition),
        retention_s=values["retention_s"],
    )
    _record(principal, "dataset.created", dataset, after=describe(dataset))
    return dataset


def do_change(principal: Principal | None, dataset: Dataset, values: DatasetValues) -> None:
    """Change a locked dataset."""
    before = describe(dataset)
    known = read_definition(dataset.definition)
    changed = completed(
        {
            "tables": values.get("tables", known["tables"]),
            "id_keys": values.get("id_keys", known["id_keys"]),
        }
    )
    check_change(known, changed)
    dataset.definition = json.dumps(changed)
    dataset.retention_s = values.get("retention_s", dataset.retention_s)
    dataset.save_next_version()
    _record(principal, "dataset.updated", dataset, before=before, after=describe(dataset))


def do_delete(principal: Principal | None, dataset: Dataset) -> None:
    """Drop a locked dataset with all of its data."""
    before, arguments = describe(dataset), {"dataset": str(dataset.pk)}
    for due_in_s in (0.0, AGAIN_AFTER_S):
        run_after_commit(
            REMOVE_TASK, dict(arguments), tenant_id=dataset.tenant_id, due_in_s=due_in_s
        )
    _record(principal, "dataset.deleted", dataset, before=before)
    dataset.delete()


def _record(
    principal: Principal | None,
    action: str,
    dataset: Dataset,
    *,
    before: JsonObject | None = None,
    after: JsonObject | None = None,
) -> None:
    target = audit.AuditTarget("dataset", str(dataset.pk))
    audit.record(principal, action, target, before=before, after=after)
