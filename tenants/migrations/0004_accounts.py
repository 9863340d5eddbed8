"""What user accounts need: changing an address, and signing up by invitation.

An invitee's account, membership and audit entry are created in one transaction, which only the
application's role can write as a whole. So that role may also add users: only the current user and,
like the sign-in role, never staff.
"""

from __future__ import annotations

from django.db import migrations, models

from foundation.rls import CURRENT_USER

_OWN = f"user_id = {CURRENT_USER}"


class Migration(migrations.Migration):
    dependencies = [("tenants", "0003_protect")]

    operations = [
        migrations.AddField(
            model_name="emailproof",
            name="email",
            field=models.EmailField(blank=True, db_default="", max_length=254),
        ),
        migrations.AlterField(
            model_name="emailproof",
            name="purpose",
            field=models.CharField(
                choices=[("verify", "verify"), ("reset", "reset"), ("change", "change")],
                max_length=10,
            ),
        ),
        migrations.RunSQL(
            "GRANT SELECT, INSERT, DELETE ON tenants_emailproof TO rb_app;"
            f"CREATE POLICY rb_app ON tenants_emailproof TO rb_app USING ({_OWN}) WITH CHECK ({_OWN});",
            "DROP POLICY rb_app ON tenants_emailproof;"
            "REVOKE ALL ON tenants_emailproof FROM rb_app;",
        ),
        migrations.RunSQL(
            "GRANT UPDATE (email) ON tenants_user TO rb_auth;"
            "GRANT INSERT ON tenants_user TO rb_app;"
            "CREATE POLICY no_new_staff ON tenants_user AS RESTRICTIVE FOR INSERT "
            "TO rb_app, rb_auth WITH CHECK (NOT is_staff);",
            "DROP POLICY no_new_staff ON tenants_user;"
            "REVOKE INSERT ON tenants_user FROM rb_app;"
            "REVOKE UPDATE (email) ON tenants_user FROM rb_auth;",
        ),
    ]
