"""The collection quota of each plan, unless staff have set a value."""

from __future__ import annotations

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

COLLECTIONS = {"free": 20, "standard": 500, "dedicated": 5000}


def add_limits(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    plans = apps.get_model("tenants", "Plan").objects.using(schema_editor.connection.alias)
    for plan in plans.filter(name__in=COLLECTIONS):
        plan.limits.setdefault("collections", COLLECTIONS[plan.name])
        plan.save()


def keep_limits(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Keep the limits: an unused limit is harmless."""


class Migration(migrations.Migration):
    dependencies = [("documents", "0003_event_layer"), ("tenants", "0005_background_work")]

    operations = [migrations.RunPython(add_limits, keep_limits)]
