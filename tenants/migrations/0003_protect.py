"""Privileges and row security on the tables of tenants: the second barrier between tenants."""

from __future__ import annotations

from django.db import migrations

from foundation.rls import CURRENT_TENANT, CURRENT_USER, OWN_TENANT, Grant, Protect

ALL = "SELECT, INSERT, UPDATE, DELETE"

_MEMBER_OF_TENANT = (
    "EXISTS (SELECT 1 FROM tenants_membership m "
    f"WHERE m.user_id = tenants_user.id AND m.tenant_id = {CURRENT_TENANT})"
)
_TENANT_OF_USER = (
    "EXISTS (SELECT 1 FROM tenants_membership m "
    f"WHERE m.tenant_id = tenants_tenant.id AND m.user_id = {CURRENT_USER})"
)
OWN_USER = f"user_id = {CURRENT_USER}"
OWN_OR_TENANTS = f"user_id = {CURRENT_USER} OR tenant_id = {CURRENT_TENANT}"


class Migration(migrations.Migration):
    dependencies = [("tenants", "0002_plans"), ("foundation", "0002_protect")]

    operations = [
        Protect(
            "tenants_user",
            # The user and fellow members; only the user's own row can be updated.
            app=Grant(
                "SELECT, UPDATE (name, email, password, version, email_verified_at)",
                f"id = {CURRENT_USER} OR {_MEMBER_OF_TENANT}",
                f"id = {CURRENT_USER}",
            ),
            auth=Grant(
                "SELECT, INSERT, UPDATE (name, password, version, last_login, email_verified_at)"
            ),
            relay=Grant("SELECT"),
            staff=Grant(ALL),
        ),
        Protect(
            "tenants_emailproof",
            auth=Grant("SELECT, INSERT, UPDATE, DELETE"),
            relay=Grant("SELECT, DELETE"),
            staff=Grant("SELECT, DELETE"),
        ),
        Protect(
            "tenants_usersession",
            app=Grant("SELECT, DELETE", OWN_USER),
            auth=Grant(ALL),
            relay=Grant("SELECT, DELETE"),
            staff=Grant("SELECT, DELETE"),
        ),
        Protect(
            "tenants_plan",
            app=Grant("SELECT"),
            auth=Grant("SELECT"),
            relay=Grant("SELECT"),
            staff=Grant(ALL),
        ),
        Protect(
            "tenants_tenant",
            app=Grant(
                "SELECT, INSERT, UPDATE",
                f"id = {CURRENT_TENANT} OR {_TENANT_OF_USER}",
                f"id = {CURRENT_TENANT}",
            ),
            auth=Grant("SELECT"),
            relay=Grant("SELECT, UPDATE, DELETE"),
            staff=Grant("SELECT, UPDATE"),
        ),
        Protect(
            "tenants_quota",
            app=Grant("SELECT", OWN_TENANT),
            auth=Grant("SELECT"),
            relay=Grant("SELECT, DELETE"),
            staff=Grant(ALL),
        ),
        Protect(
            "tenants_membership",
            app=Grant(ALL, OWN_OR_TENANTS, OWN_TENANT),
            auth=Grant("SELECT"),
            relay=Grant("SELECT, DELETE"),
            staff=Grant(ALL),
        ),
        Protect(
            "tenants_invitation",
            app=Grant(ALL, OWN_TENANT),
            auth=Grant("SELECT"),
            relay=Grant("SELECT, DELETE"),
            staff=Grant("SELECT, DELETE"),
        ),
        Protect(
            "tenants_personaltoken",
            app=Grant(ALL, OWN_OR_TENANTS),
            auth=Grant("SELECT, UPDATE (last_used_at)"),
            relay=Grant("SELECT, DELETE"),
            staff=Grant("SELECT, DELETE"),
        ),
        Protect(
            "tenants_apikey",
            app=Grant(ALL, OWN_TENANT),
            auth=Grant("SELECT, UPDATE (last_used_at)"),
            relay=Grant("SELECT, UPDATE, DELETE"),
            staff=Grant("SELECT, DELETE"),
        ),
        Protect(
            "tenants_issuer",
            app=Grant(ALL, OWN_TENANT),
            auth=Grant("SELECT"),
            relay=Grant("SELECT, DELETE"),
            staff=Grant("SELECT, DELETE"),
        ),
        Protect(
            "tenants_auditentry",
            # Append-only: only the retention sweep deletes entries, and no role updates them.
            app=Grant("SELECT, INSERT", OWN_TENANT),
            relay=Grant("SELECT, INSERT, DELETE"),
            staff=Grant("SELECT, INSERT"),
        ),
        Protect("tenants_usagesample", relay=Grant("SELECT, INSERT, DELETE")),
        Protect(
            "tenants_usagehour",
            app=Grant("SELECT", OWN_TENANT),
            relay=Grant(ALL),
            staff=Grant("SELECT"),
        ),
        Protect(
            "tenants_webhook",
            app=Grant(ALL, OWN_TENANT),
            relay=Grant("SELECT, UPDATE, DELETE"),
            staff=Grant("SELECT"),
        ),
        Protect(
            "tenants_webhookdelivery",
            app=Grant(ALL, OWN_TENANT),
            relay=Grant("SELECT, UPDATE, DELETE"),
            staff=Grant("SELECT"),
        ),
    ]
