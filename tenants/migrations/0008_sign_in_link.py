"""Sign-in links, in addition to those about addresses."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tenants", "0007_live_limits")]

    operations = [
        migrations.AlterField(
            model_name="emailproof",
            name="purpose",
            field=models.CharField(
                choices=[
                    ("verify", "verify"),
                    ("reset", "reset"),
                    ("change", "change"),
                    ("sign_in", "sign_in"),
                ],
                max_length=10,
            ),
        ),
    ]
