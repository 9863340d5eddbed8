"""The techniques of automatic indexes: how they are used, what is advised, and replacements."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("documents", "0009_index_technique")]

    operations = [
        migrations.AddField(
            "index",
            "chosen_technique",
            models.CharField(
                max_length=9,
                choices=[
                    ("auto", "auto"),
                    ("composite", "composite"),
                    ("lazy", "lazy"),
                    ("eager", "eager"),
                    ("embedded", "embedded"),
                ],
                blank=True,
                default="",
                db_default="",
            ),
        ),
        migrations.AddField(
            "index",
            "replaces",
            models.ForeignKey(
                "documents.Index",
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="replacements",
            ),
        ),
        migrations.AddField("index", "counters", models.JSONField(null=True)),
        migrations.AddField("index", "counters_at", models.DateTimeField(null=True)),
        migrations.AddField("index", "advice", models.JSONField(null=True)),
        migrations.RemoveConstraint("index", "index_name_unique"),
        migrations.AddConstraint(
            "index",
            models.UniqueConstraint(
                fields=["collection", "name"],
                condition=models.Q(
                    ("replaces", None), models.Q(("state", "dropping"), _negated=True)
                ),
                name="index_name_unique",
            ),
        ),
    ]
