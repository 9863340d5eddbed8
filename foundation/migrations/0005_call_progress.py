"""Calls that take several transactions record how far they have got."""

from __future__ import annotations

from django.db import migrations, models

from foundation.rls import OWN_TENANT, Grant, Protect


class Migration(migrations.Migration):
    dependencies = [("foundation", "0004_task_handed_to")]

    operations = [
        migrations.CreateModel(
            name="CallProgress",
            fields=[
                (
                    "key_hash",
                    models.BinaryField(max_length=32, primary_key=True, serialize=False),
                ),
                ("request_hash", models.BinaryField(max_length=32)),
                ("tenant_id", models.UUIDField()),
                ("state", models.BinaryField()),
                ("created_at", models.DateTimeField(auto_now_add=True, db_index=True)),
            ],
        ),
        Protect(
            "foundation_callprogress",
            app=Grant("SELECT, INSERT, UPDATE, DELETE", OWN_TENANT),
            relay=Grant("SELECT, DELETE"),
        ),
    ]
