"""Prepares an empty PostgreSQL database, or that of an older release, for this release."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from django.core.management import call_command
from django.db import connections
from django.db.migrations.executor import MigrationExecutor
from psycopg import sql

from foundation.database_roles import DatabaseRole, role_password
from foundation.environment import environment

#: Serialises concurrent runs; the number is arbitrary and must never change.
_PREPARE_LOCK = 7_421_100_001
#: Roles that may write even if the disk is nearly full: for sign-in, for housekeeping, which
#: removes expired rows, and for migrations. They write little.
_WRITES_ALWAYS = (DatabaseRole.AUTH, DatabaseRole.RELAY, DatabaseRole.OWNER)


def prepare() -> int:
    """Create roles if DATABASE_URL allows it, then migrate. Return how many migrations ran."""
    env = environment()
    if not env.database_url:
        return _migrate()
    with psycopg.connect(env.database_url, autocommit=True) as admin, _prepare_lock(admin):
        _create_roles(admin, env.rillbase_secret_key.get_secret_value())
        return _migrate()


@contextmanager
def _prepare_lock(admin: psycopg.Connection) -> Iterator[None]:
    admin.execute("SELECT pg_advisory_lock(%s)", (_PREPARE_LOCK,))
    try:
        yield
    finally:
        admin.execute("SELECT pg_advisory_unlock(%s)", (_PREPARE_LOCK,))


def _create_roles(admin: psycopg.Connection, secret: str) -> None:
    """Create each login role or update its password, and grant it access to the schema."""
    existing = {name for (name,) in admin.execute("SELECT rolname FROM pg_roles").fetchall()}
    with admin.transaction():
        for role in DatabaseRole:
            verb = "ALTER" if role.value in existing else "CREATE"
            admin.execute(
                sql.SQL(
                    "{verb} ROLE {role} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE "
                    "PASSWORD {password}"
                ).format(
                    verb=sql.SQL(verb),
                    role=sql.Identifier(role.value),
                    password=sql.Literal(role_password(secret, role)),
                )
            )
            admin.execute(
                sql.SQL("GRANT USAGE ON SCHEMA public TO {}").format(sql.Identifier(role.value))
            )
        for role in _WRITES_ALWAYS:
            admin.execute(
                sql.SQL("ALTER ROLE {} SET default_transaction_read_only = off").format(
                    sql.Identifier(role.value)
                )
            )
        admin.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
        admin.execute(
            sql.SQL("GRANT CREATE ON SCHEMA public TO {}").format(
                sql.Identifier(DatabaseRole.OWNER.value)
            )
        )


def _migrate() -> int:
    """Apply missing migrations. If there are none, this takes one query."""
    executor = MigrationExecutor(connections["owner"])
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if plan:
        call_command("migrate", database="owner", interactive=False, verbosity=0)
    connections["owner"].close()
    return len(plan)
