"""Let the staff role use Django's own tables, which contain no tenant data."""

from __future__ import annotations

from django.db import migrations

_TABLES = (
    "django_session, django_admin_log, django_content_type, "
    "auth_permission, auth_group, auth_group_permissions"
)
_MIGRATIONS_READERS = "rb_app, rb_auth, rb_relay, rb_staff"


class Migration(migrations.Migration):
    dependencies = [
        ("sessions", "0001_initial"),
        ("admin", "0003_logentry_add_action_flag_choices"),
        ("tenants", "0003_protect"),
    ]

    operations = [
        migrations.RunSQL(
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON {_TABLES} TO rb_staff",
            f"REVOKE ALL ON {_TABLES} FROM rb_staff",
        ),
        # Readiness compares the applied migrations with those of the code.
        migrations.RunSQL(
            f"GRANT SELECT ON django_migrations TO {_MIGRATIONS_READERS}",
            f"REVOKE ALL ON django_migrations FROM {_MIGRATIONS_READERS}",
        ),
    ]
