"""How many connections and subscriptions each plan allows, unless staff have set a value."""

from __future__ import annotations

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

LIMITS = {
    "free": {"connections": 100, "subscriptions": 1_000},
    "standard": {"connections": 5_000, "subscriptions": 50_000},
    "dedicated": {"connections": 50_000, "subscriptions": 500_000},
}


def add_limits(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    plans = apps.get_model("tenants", "Plan").objects.using(schema_editor.connection.alias)
    for plan in plans.filter(name__in=LIMITS):
        plan.limits = {**LIMITS[plan.name], **plan.limits}
        plan.save()


def keep_limits(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Keep the limits: an unused limit is harmless."""


class Migration(migrations.Migration):
    dependencies = [("tenants", "0006_first_session")]

    operations = [migrations.RunPython(add_limits, keep_limits)]
