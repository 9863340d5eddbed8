"""Saved queries, and how many of them each plan allows, unless staff have set a value."""

from __future__ import annotations

import django.db.models.deletion
from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

import foundation.ids
from foundation.rls import OWN_TENANT, Grant, Protect, seen_by_owner

SAVED_QUERIES = {"free": 20, "standard": 200, "dedicated": 500}


def add_limits(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    plans = apps.get_model("tenants", "Plan").objects.using(schema_editor.connection.alias)
    with seen_by_owner(schema_editor, "tenants_plan"):
        for plan in plans.filter(name__in=SAVED_QUERIES):
            plan.limits.setdefault("saved_queries", SAVED_QUERIES[plan.name])
            plan.save()


def keep_limits(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Keep the limits: an unused limit is harmless."""


class Migration(migrations.Migration):
    dependencies = [("tenants", "0013_usage_minutes")]

    operations = [
        migrations.CreateModel(
            name="SavedQuery",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=foundation.ids.uuid7,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("version", models.PositiveIntegerField(default=1, editable=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("name", models.CharField(max_length=100)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("collection", "Collection"),
                            ("aggregate", "Aggregate"),
                            ("dataset", "Dataset"),
                        ],
                        max_length=10,
                    ),
                ),
                ("source", models.CharField(max_length=63)),
                ("query", models.TextField()),
                ("chart", models.JSONField(blank=True, null=True)),
                ("pin", models.PositiveSmallIntegerField(blank=True, null=True)),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="tenants.tenant",
                    ),
                ),
            ],
            options={"verbose_name_plural": "saved queries"},
        ),
        migrations.AddConstraint(
            model_name="savedquery",
            constraint=models.UniqueConstraint(
                fields=("tenant", "name"), name="saved_query_name_per_tenant"
            ),
        ),
        Protect(
            "tenants_savedquery",
            app=Grant("SELECT, INSERT, UPDATE, DELETE", OWN_TENANT),
            relay=Grant("SELECT, DELETE"),
        ),
        migrations.RunPython(add_limits, keep_limits),
    ]
