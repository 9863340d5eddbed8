from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("sources", "0002_protect")]

    operations = [
        migrations.AddField(
            model_name="source",
            name="removing_since",
            field=models.DateTimeField(null=True),
        ),
        migrations.AlterField(
            model_name="source",
            name="state",
            field=models.CharField(
                choices=[
                    ("starting", "Starting"),
                    ("copying", "Copying"),
                    ("live", "Live"),
                    ("paused", "Paused"),
                    ("waiting", "Waiting"),
                    ("halted", "Halted"),
                    ("removing", "Removing"),
                ],
                default="starting",
                max_length=10,
            ),
        ),
    ]
