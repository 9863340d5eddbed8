"""How the entries of an index are stored."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("documents", "0008_native_grids")]

    operations = [
        migrations.AddField(
            "index",
            "technique",
            models.CharField(
                max_length=9,
                choices=[
                    ("auto", "auto"),
                    ("composite", "composite"),
                    ("lazy", "lazy"),
                    ("eager", "eager"),
                    ("embedded", "embedded"),
                ],
                default="auto",
                db_default="auto",
            ),
        )
    ]
