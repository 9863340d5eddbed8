"""Dataset limits of each plan, unless staff have set a value.

The migration that added these limits found no plan: row security had hidden the plans from it.
"""

from __future__ import annotations

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from foundation.rls import seen_by_owner

LIMITS = {
    "free": {"datasets": 5, "dataset_bytes": 1_000_000_000},
    "standard": {"datasets": 50, "dataset_bytes": 100_000_000_000},
    "dedicated": {"datasets": 500, "dataset_bytes": 10_000_000_000_000},
}


def add_limits(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    plans = apps.get_model("tenants", "Plan").objects.using(schema_editor.connection.alias)
    with seen_by_owner(schema_editor, "tenants_plan"):
        for plan in plans.filter(name__in=LIMITS):
            plan.limits = {**LIMITS[plan.name], **plan.limits}
            plan.save()


def keep_limits(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Keep the limits: an unused limit is harmless."""


class Migration(migrations.Migration):
    dependencies = [("analytics", "0003_id_keys"), ("tenants", "0010_plans_limits")]

    operations = [migrations.RunPython(add_limits, keep_limits)]
