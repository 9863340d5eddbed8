"""Privileges and row policies of the tables of this package."""

from __future__ import annotations

from django.db import migrations

from foundation.rls import CURRENT_TENANT, CURRENT_USER, Grant, Protect

#: A record belongs to its tenant, or to its user if it has no tenant.
OWN_RECORD = (
    f"tenant_id = {CURRENT_TENANT} "
    f"OR (tenant_id IS NULL AND user_id IS NOT NULL AND user_id = {CURRENT_USER})"
)
ANONYMOUS_RECORD = "tenant_id IS NULL AND user_id IS NULL"
OWN_TASK = f"tenant_id IS NULL OR tenant_id = {CURRENT_TENANT}"


class Migration(migrations.Migration):
    dependencies = [("foundation", "0001_initial")]

    operations = [
        Protect(
            "foundation_idempotencyrecord",
            app=Grant("SELECT, INSERT", OWN_RECORD),
            auth=Grant("SELECT, INSERT", ANONYMOUS_RECORD),
            relay=Grant("SELECT, DELETE"),
        ),
        Protect(
            "foundation_outboxtask",
            app=Grant("SELECT, INSERT", OWN_TASK),
            auth=Grant("SELECT, INSERT"),
            relay=Grant("SELECT, INSERT, UPDATE, DELETE"),
            staff=Grant("SELECT, INSERT"),
        ),
        Protect(
            "foundation_deadletter",
            relay=Grant("SELECT, INSERT, UPDATE, DELETE"),
            staff=Grant("SELECT, UPDATE, DELETE"),
        ),
    ]
