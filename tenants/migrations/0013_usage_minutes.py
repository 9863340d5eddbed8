"""Usage by minute, which the overview shows: written by the roll-up, read by the tenant's members."""

from __future__ import annotations

from django.db import migrations, models

from foundation.rls import OWN_TENANT, Grant, Protect


class Migration(migrations.Migration):
    dependencies = [("tenants", "0012_request_log")]

    operations = [
        migrations.CreateModel(
            name="UsageMinute",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("tenant_id", models.UUIDField()),
                ("minute", models.DateTimeField()),
                ("writes", models.BigIntegerField(default=0)),
                ("events", models.BigIntegerField(default=0)),
            ],
            options={
                "indexes": [models.Index(fields=["minute"], name="usage_oldest_minutes_first")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant_id", "minute"), name="usage_once_per_minute"
                    )
                ],
            },
        ),
        Protect(
            "tenants_usageminute",
            app=Grant("SELECT", OWN_TENANT),
            relay=Grant("SELECT, INSERT, UPDATE, DELETE"),
        ),
    ]
