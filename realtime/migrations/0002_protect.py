"""Privileges on clusters."""

from __future__ import annotations

from django.db import migrations

from foundation.rls import OWN_TENANT, Grant, Protect


class Migration(migrations.Migration):
    dependencies = [("realtime", "0001_initial"), ("foundation", "0002_protect")]

    operations = [
        Protect(
            "realtime_cluster",
            app=Grant("SELECT, INSERT, UPDATE", OWN_TENANT),
            relay=Grant("SELECT, UPDATE, DELETE"),
            staff=Grant("SELECT"),
        ),
    ]
