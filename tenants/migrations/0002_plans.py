"""The plans that every installation starts with. Staff may change them afterwards."""

from __future__ import annotations

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

PLANS = {
    "free": (
        "For trying things out",
        {
            "requests_per_s": 50,
            "requests_burst": 200,
            "members": 5,
            "api_keys": 10,
            "webhooks": 3,
            "issuers": 2,
        },
    ),
    "standard": (
        "For applications in production",
        {
            "requests_per_s": 1000,
            "requests_burst": 4000,
            "members": 50,
            "api_keys": 100,
            "webhooks": 25,
            "issuers": 10,
        },
    ),
    "dedicated": (
        "A cluster of its own",
        {
            "requests_per_s": 10000,
            "requests_burst": 40000,
            "members": 500,
            "api_keys": 1000,
            "webhooks": 100,
            "issuers": 50,
        },
    ),
}


def add_plans(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    plan = apps.get_model("tenants", "Plan")
    rows = [
        plan(name=name, description=description, limits=limits)
        for name, (description, limits) in PLANS.items()
    ]
    plan.objects.using(schema_editor.connection.alias).bulk_create(rows)


def remove_plans(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    plan = apps.get_model("tenants", "Plan")
    plan.objects.using(schema_editor.connection.alias).filter(name__in=PLANS).delete()


class Migration(migrations.Migration):
    dependencies = [("tenants", "0001_initial")]

    operations = [migrations.RunPython(add_plans, remove_plans)]
