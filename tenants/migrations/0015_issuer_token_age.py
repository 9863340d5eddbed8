"""Tokens of end users have a maximum age, whatever their expiry."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tenants", "0014_saved_queries")]

    operations = [
        migrations.AddField(
            model_name="issuer",
            name="max_token_age_s",
            field=models.PositiveIntegerField(default=86_400, db_default=86_400),
        ),
    ]
