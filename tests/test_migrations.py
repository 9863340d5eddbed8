"""Migrations only expand, and none is missing."""

from __future__ import annotations

import re

import pytest
from django.core.management import call_command
from django.db.migrations import Migration
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations import (
    AlterField,
    DeleteModel,
    RemoveField,
    RenameField,
    RenameModel,
    RunSQL,
)
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

OURS = frozenset({"foundation", "tenants", "rillbase_server"})
CONTRACTING_SQL = re.compile(r"\b(DROP|TRUNCATE|RENAME|SET NOT NULL)\b", re.IGNORECASE)


def migrations() -> list[Migration]:
    result = MigrationLoader(None).disk_migrations
    return [migration for (app, _), migration in sorted(result.items()) if app in OURS]


def contractions(migration: Migration) -> list[str]:
    before = MigrationLoader(None).project_state((migration.app_label, migration.name), False)
    return [o.describe() for o in migration.operations if contracts(o, migration, before)]


def contracts(operation: Operation, migration: Migration, before: ProjectState) -> bool:
    """Return whether the previous release's code may fail after this operation."""
    if isinstance(operation, AlterField):
        model = before.models[migration.app_label, operation.model_name_lower]
        return bool(model.fields[operation.name].null and not operation.field.null)
    if isinstance(operation, RunSQL):
        return CONTRACTING_SQL.search(str(operation.sql)) is not None
    return isinstance(operation, (DeleteModel, RemoveField, RenameField, RenameModel))


@pytest.mark.parametrize("migration", migrations(), ids=str)
def test_a_migration_only_expands_or_names_the_release_it_contracts(migration: Migration) -> None:
    assert not contractions(migration) or getattr(migration, "contracts", None)


def test_no_migration_is_missing() -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)
