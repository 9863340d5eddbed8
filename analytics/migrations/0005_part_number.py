"""The field `place` is now `part_number`. Its column keeps its name, so the table is unchanged."""

from __future__ import annotations

from django.db import migrations, models

_FIELD = models.PositiveIntegerField(db_column="place", default=0)


class Migration(migrations.Migration):
    dependencies = [("analytics", "0004_plan_limits")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RenameField("storedfile", "place", "part_number"),
                migrations.AlterField("storedfile", "part_number", _FIELD),
            ],
        ),
    ]
