"""Moves of collections between backends."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models

from foundation.rls import OWN_TENANT, Grant, Protect

_BACKENDS = [("postgres", "postgres"), ("native", "native")]

#: The documents of collections in PostgreSQL that were changed since their move began. Accessed only
#: with SQL, like documents.
_CHANGE = """
CREATE TABLE documents_movechange (
    tenant_id uuid NOT NULL,
    collection_id uuid NOT NULL,
    key bytea NOT NULL,
    version bigint NOT NULL,
    PRIMARY KEY (collection_id, key)
);
"""


class Migration(migrations.Migration):
    dependencies = [("documents", "0010_index_advice"), ("tenants", "0001_initial")]

    operations = [
        migrations.AddField(
            "collection",
            "move_stage",
            models.CharField(
                max_length=7,
                choices=[("copying", "Copying"), ("sealed", "Sealed")],
                blank=True,
                default="",
                db_default="",
            ),
        ),
        migrations.AddField("collection", "moved_at", models.DateTimeField(null=True)),
        migrations.CreateModel(
            "CollectionMove",
            [
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("backend", models.CharField(max_length=10, choices=_BACKENDS)),
                (
                    "state",
                    models.CharField(
                        max_length=10,
                        choices=[
                            ("clearing", "Clearing"),
                            ("copying", "Copying"),
                            ("failed", "Failed"),
                        ],
                        default="clearing",
                    ),
                ),
                ("position", models.BinaryField(default=b"")),
                ("has_copied_all", models.BooleanField(default=False)),
                ("documents_done", models.BigIntegerField(default=0)),
                ("documents_total", models.BigIntegerField(default=0)),
                ("error", models.TextField(blank=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "collection",
                    models.OneToOneField(
                        "documents.Collection",
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="move",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        "tenants.Tenant",
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                    ),
                ),
            ],
        ),
        migrations.RunSQL(_CHANGE, "DROP TABLE documents_movechange"),
        Protect(
            "documents_collectionmove",
            app=Grant("SELECT, INSERT, UPDATE, DELETE", OWN_TENANT),
            relay=Grant("SELECT, UPDATE, DELETE"),
            staff=Grant("SELECT"),
        ),
        Protect(
            "documents_movechange",
            app=Grant("SELECT, INSERT, UPDATE, DELETE", OWN_TENANT),
            relay=Grant("SELECT, DELETE"),
        ),
    ]
