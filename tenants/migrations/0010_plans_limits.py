"""Limits that each plan sets on later features, unless staff have set a value.

The migrations that added these limits found no plan: row security had hidden the plans from them.
"""

from __future__ import annotations

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from foundation.rls import seen_by_owner

LIMITS = {
    "free": {
        "collections": 20,
        "topics": 20,
        "aggregates": 10,
        "connections": 100,
        "subscriptions": 1_000,
        "cluster_write_partitions": 0,
    },
    "standard": {
        "collections": 500,
        "topics": 500,
        "aggregates": 100,
        "connections": 5_000,
        "subscriptions": 50_000,
        "cluster_write_partitions": 0,
    },
    "dedicated": {
        "collections": 5_000,
        "topics": 5_000,
        "aggregates": 1_000,
        "connections": 50_000,
        "subscriptions": 500_000,
        "cluster_write_partitions": 8,
    },
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
    dependencies = [("tenants", "0009_error_log")]

    operations = [migrations.RunPython(add_limits, keep_limits)]
