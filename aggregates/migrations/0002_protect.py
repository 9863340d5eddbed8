"""Who may see aggregates, and how many each plan allows, unless staff have said so already."""

from __future__ import annotations

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from foundation.rls import OWN_TENANT, Grant, Protect

AGGREGATES = {"free": 10, "standard": 100, "dedicated": 1000}


def add_limits(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    plans = apps.get_model("tenants", "Plan").objects.using(schema_editor.connection.alias)
    for plan in plans.filter(name__in=AGGREGATES):
        plan.limits.setdefault("aggregates", AGGREGATES[plan.name])
        plan.save()


def keep_limits(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """A limit that nothing reads does no harm."""


class Migration(migrations.Migration):
    dependencies = [
        ("aggregates", "0001_initial"),
        ("foundation", "0002_protect"),
        ("tenants", "0007_live_limits"),
    ]

    operations = [
        Protect(
            "aggregates_aggregate",
            app=Grant("SELECT, INSERT, UPDATE, DELETE", OWN_TENANT),
            relay=Grant("SELECT, UPDATE, DELETE"),
            staff=Grant("SELECT"),
        ),
        migrations.RunPython(add_limits, keep_limits),
    ]
