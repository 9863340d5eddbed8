"""The error log: written by the processes in which errors occur, read by the tenant's members."""

from __future__ import annotations

from django.db import migrations, models

import foundation.ids
from foundation.rls import OWN_TENANT, Grant, Protect


class Migration(migrations.Migration):
    dependencies = [("tenants", "0008_sign_in_link")]

    operations = [
        migrations.CreateModel(
            name="ErrorEntry",
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
                ("tenant_id", models.UUIDField()),
                (
                    "area",
                    models.CharField(
                        choices=[
                            ("request", "Request"),
                            ("webhook", "Webhook"),
                            ("task", "Task"),
                            ("live", "Live"),
                            ("aggregate", "Aggregate"),
                        ],
                        max_length=20,
                    ),
                ),
                ("code", models.CharField(max_length=60)),
                ("status", models.PositiveSmallIntegerField(null=True)),
                ("place", models.CharField(max_length=200)),
                ("detail", models.CharField(blank=True, max_length=500)),
                ("actor", models.CharField(blank=True, max_length=200)),
                ("request_id", models.CharField(blank=True, max_length=64)),
                ("count", models.PositiveBigIntegerField(default=1)),
                ("at", models.DateTimeField()),
                ("last_at", models.DateTimeField()),
                ("fingerprint", models.BinaryField(max_length=32)),
            ],
            options={"verbose_name": "error"},
        ),
        migrations.AddIndex(
            model_name="errorentry",
            index=models.Index(fields=["tenant_id", "-id"], name="errors_newest_first"),
        ),
        migrations.AddIndex(
            model_name="errorentry",
            index=models.Index(fields=["last_at"], name="errors_oldest_first"),
        ),
        migrations.AddConstraint(
            model_name="errorentry",
            constraint=models.UniqueConstraint(
                fields=["tenant_id", "fingerprint"], name="errors_once_per_minute"
            ),
        ),
        Protect(
            "tenants_errorentry",
            app=Grant("SELECT", OWN_TENANT),
            relay=Grant("SELECT, INSERT, UPDATE, DELETE"),
        ),
    ]
