"""Who may see topics, and how many each plan allows, unless staff have said so already."""

from __future__ import annotations

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from foundation.rls import OWN_TENANT, Grant, Protect

TOPICS = {"free": 20, "standard": 500, "dedicated": 5000}


def add_limits(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    plans = apps.get_model("tenants", "Plan").objects.using(schema_editor.connection.alias)
    for plan in plans.filter(name__in=TOPICS):
        plan.limits.setdefault("topics", TOPICS[plan.name])
        plan.save()


def keep_limits(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """A limit that nothing reads does no harm."""


class Migration(migrations.Migration):
    dependencies = [
        ("storage_engine", "0001_initial"),
        ("foundation", "0002_protect"),
        ("tenants", "0007_live_limits"),
    ]

    operations = [
        Protect(
            "storage_engine_topic",
            app=Grant("SELECT, INSERT, UPDATE, DELETE", OWN_TENANT),
            relay=Grant("SELECT, DELETE"),
            staff=Grant("SELECT"),
        ),
        Protect(
            "storage_engine_deliveredsubscription",
            app=Grant("SELECT, INSERT, UPDATE, DELETE", OWN_TENANT),
            relay=Grant("SELECT, DELETE"),
            staff=Grant("SELECT"),
        ),
        migrations.RunPython(add_limits, keep_limits),
    ]
