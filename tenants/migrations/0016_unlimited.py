"""The plan of tenants on a developer's own machine."""

from __future__ import annotations

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from foundation.rls import seen_by_owner

NAME = "unlimited"
#: More than one installation holds, and a 32-bit integer in every client.
NO_LIMIT = 1_000_000_000
NO_LIMIT_OF_BYTES = 1_000_000_000_000_000
COUNTS = (
    "requests_per_s",
    "requests_burst",
    "members",
    "api_keys",
    "webhooks",
    "issuers",
    "saved_queries",
    "collections",
    "sources",
    "topics",
    "aggregates",
    "datasets",
    "connections",
    "subscriptions",
)


def add_plan(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    plans = apps.get_model("tenants", "Plan").objects.using(schema_editor.connection.alias)
    limits = dict.fromkeys(COUNTS, NO_LIMIT)
    limits |= {"dataset_bytes": NO_LIMIT_OF_BYTES, "cluster_write_partitions": 8}
    with seen_by_owner(schema_editor, "tenants_plan"):
        plans.get_or_create(
            name=NAME,
            defaults={"description": "For your own machine", "limits": limits},
        )


def keep_plan(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Keep the plan: tenants may have it."""


class Migration(migrations.Migration):
    dependencies = [("tenants", "0015_issuer_token_age")]

    operations = [migrations.RunPython(add_plan, keep_plan)]
