"""Privileges on sources, and the number each plan allows, unless staff have set a value."""

from __future__ import annotations

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from foundation.rls import OWN_TENANT, Grant, Protect, seen_by_owner

SOURCES = {"free": 2, "standard": 20, "dedicated": 200}


def add_limits(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    plans = apps.get_model("tenants", "Plan").objects.using(schema_editor.connection.alias)
    with seen_by_owner(schema_editor, "tenants_plan"):
        for plan in plans.filter(name__in=SOURCES):
            plan.limits.setdefault("sources", SOURCES[plan.name])
            plan.save()


def keep_limits(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Keep the limits: an unused limit is harmless."""


class Migration(migrations.Migration):
    dependencies = [
        ("sources", "0001_initial"),
        ("foundation", "0002_protect"),
        ("tenants", "0007_live_limits"),
    ]

    operations = [
        # Only the roles that connect may read connections; staff cannot see them.
        Protect(
            "sources_source",
            app=Grant("SELECT, INSERT, UPDATE, DELETE", OWN_TENANT),
            relay=Grant("SELECT, UPDATE, DELETE"),
        ),
        migrations.RunPython(add_limits, keep_limits),
    ]
