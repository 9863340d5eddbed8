"""The field `wish` is now `desired_state`. Its column keeps its name, so the table is unchanged."""

from __future__ import annotations

from django.db import migrations, models

_FIELD = models.CharField(
    choices=[("running", "Running"), ("paused", "Paused"), ("removed", "Removed")],
    db_column="wish",
    default="running",
    max_length=10,
)
_UNIQUE = models.UniqueConstraint(
    condition=models.Q(("desired_state", "removed"), _negated=True),
    fields=("collection_id",),
    name="source_collection_unique",
)


class Migration(migrations.Migration):
    dependencies = [("sources", "0003_removing")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RemoveConstraint("source", "source_collection_unique"),
                migrations.RenameField("source", "wish", "desired_state"),
                migrations.AlterField("source", "desired_state", _FIELD),
                migrations.AddConstraint("source", _UNIQUE),
            ],
        ),
    ]
