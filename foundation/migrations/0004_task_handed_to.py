"""Tasks store the broker that has them, and are kept until they end."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("foundation", "0003_task_context")]

    operations = [
        migrations.AddField(
            model_name="outboxtask",
            name="handed_to",
            field=models.CharField(blank=True, db_default="", default="", max_length=100),
        ),
        migrations.AddField(
            model_name="outboxtask",
            name="handed_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.RemoveIndex(model_name="outboxtask", name="outbox_task_due"),
        migrations.AddIndex(
            model_name="outboxtask",
            index=models.Index(
                fields=["due_at"],
                name="outbox_task_waiting",
                condition=models.Q(("handed_to", "")),
            ),
        ),
    ]
