"""An invited person's first session begins in the transaction that makes the account.

So the application's role may open sessions: those of the user in whose name it acts.
"""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("tenants", "0005_background_work")]

    operations = [
        migrations.RunSQL(
            "GRANT INSERT ON tenants_usersession TO rb_app;",
            "REVOKE INSERT ON tenants_usersession FROM rb_app;",
        ),
    ]
