"""The request log: written by the web servers, read by the tenant's members."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models

import foundation.ids
from foundation.rls import OWN_TENANT, Grant, Protect


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0011_sources"),
    ]

    operations = [
        migrations.CreateModel(
            name="RequestBatch",
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
                ("first_at", models.DateTimeField()),
                ("last_at", models.DateTimeField()),
                ("entries", models.PositiveIntegerField()),
                ("size_bytes", models.PositiveIntegerField()),
                ("at", ArrayField(base_field=models.DateTimeField(), size=None)),
                ("kind", ArrayField(base_field=models.TextField(), size=None)),
                ("method", ArrayField(base_field=models.TextField(), size=None)),
                ("route", ArrayField(base_field=models.TextField(), size=None)),
                ("status", ArrayField(base_field=models.SmallIntegerField(), size=None)),
                ("duration_ms", ArrayField(base_field=models.FloatField(), size=None)),
                ("bytes_in", ArrayField(base_field=models.BigIntegerField(), size=None)),
                ("bytes_out", ArrayField(base_field=models.BigIntegerField(), size=None)),
                ("actor", ArrayField(base_field=models.TextField(), size=None)),
                ("request_id", ArrayField(base_field=models.TextField(), size=None)),
                ("code", ArrayField(base_field=models.TextField(), size=None)),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["tenant_id", "-last_at", "-id"],
                        include=("entries", "size_bytes"),
                        name="requests_newest_first",
                    ),
                    models.Index(fields=["last_at"], name="requests_oldest_first"),
                ],
            },
        ),
        migrations.CreateModel(
            name="RequestGap",
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
                ("minute", models.DateTimeField()),
                ("dropped", models.PositiveBigIntegerField(default=0)),
                ("removed", models.PositiveBigIntegerField(default=0)),
            ],
            options={
                "indexes": [models.Index(fields=["minute"], name="gaps_oldest_first")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant_id", "minute"), name="gaps_once_per_minute"
                    )
                ],
            },
        ),
        Protect(
            "tenants_requestbatch",
            app=Grant("SELECT", OWN_TENANT),
            relay=Grant("SELECT, INSERT, DELETE"),
        ),
        Protect(
            "tenants_requestgap",
            app=Grant("SELECT", OWN_TENANT),
            relay=Grant("SELECT, INSERT, UPDATE, DELETE"),
        ),
    ]
