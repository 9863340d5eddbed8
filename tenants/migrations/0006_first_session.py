"""An invitee's first session is opened in the transaction that creates the account.

So the application's role may open sessions, for the current user only.
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
