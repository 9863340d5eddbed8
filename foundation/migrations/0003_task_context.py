"""Tasks store the request that created them, and the number of the next attempt."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("foundation", "0002_protect")]

    operations = [
        migrations.AddField(
            model_name="outboxtask",
            name="attempt",
            field=models.PositiveSmallIntegerField(db_default=1, default=1),
        ),
        migrations.AddField(
            model_name="outboxtask",
            name="request_id",
            field=models.CharField(db_default="", default="", max_length=64),
        ),
    ]
