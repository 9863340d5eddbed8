"""How many documents a view has left out, since they could not be evaluated."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("aggregates", "0002_protect")]

    operations = [
        migrations.AddField("aggregate", "left_out", models.BigIntegerField(default=0)),
        migrations.AddField("aggregate", "left_out_detail", models.TextField(blank=True)),
    ]
