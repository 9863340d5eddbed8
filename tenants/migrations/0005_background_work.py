"""Columns that let sweeps and webhook deliveries act exactly once."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tenants", "0004_accounts")]

    operations = [
        migrations.AddField(
            model_name="webhook",
            name="held_until",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="apikey",
            name="expiry_noted_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
