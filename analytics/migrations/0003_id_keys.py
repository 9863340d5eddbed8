"""Keys stored as ids: lists of keys beside segments, and runs in which they have ids."""

from __future__ import annotations

from django.db import migrations, models

STAGES = [("remapped", "Remapped"), ("sorted", "Sorted"), ("merged", "Merged")]
AUTHORITY = ("authority", "Authority")


class Migration(migrations.Migration):
    dependencies = [("analytics", "0002_protect")]

    operations = [
        migrations.AddField(
            model_name="storedfile",
            name="id_key",
            field=models.CharField(blank=True, default="", max_length=63),
            preserve_default=False,
        ),
        migrations.AlterField(
            model_name="storedfile",
            name="table",
            field=models.CharField(blank=True, max_length=63),
        ),
        migrations.AlterField(
            model_name="storedfile",
            name="stage",
            field=models.CharField(
                choices=[("unsorted", "Unsorted"), *STAGES, AUTHORITY], max_length=10
            ),
        ),
        migrations.AlterField(
            model_name="run",
            name="stage",
            field=models.CharField(choices=[*STAGES, AUTHORITY], max_length=10),
        ),
    ]
