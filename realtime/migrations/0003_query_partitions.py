"""Query partitions of tenants' dedicated grids."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("realtime", "0002_protect"), ("documents", "0006_query_partitions")]

    operations = [
        migrations.AddField(
            "cluster", "query_partitions", models.PositiveSmallIntegerField(default=1)
        ),
    ]
