"""Row-level security as a migration operation.

Every table of the schema is protected by one `Protect` in the migration that creates it: row
security enabled and forced, and for each role that needs the table its privileges and a policy
that says which rows it may see. A role that is not named has no access at all. A test walks the
schema and fails on a table without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

from foundation.database_roles import DatabaseRole

#: After a transaction PostgreSQL leaves the setting as '' and not NULL, hence nullif.
CURRENT_TENANT = "nullif(current_setting('rillbase.tenant', true), '')::uuid"
CURRENT_USER = "nullif(current_setting('rillbase.user', true), '')::uuid"

#: Rows of the tenant in scope.
OWN_TENANT = f"tenant_id = {CURRENT_TENANT}"
#: All rows.
EVERY_ROW = "true"


@dataclass(frozen=True, slots=True)
class Grant:
    """What one role may do with a table, and with which of its rows.

    `check` says which rows may be written; without it, the same as may be seen.
    """

    privileges: str
    rows: str = EVERY_ROW
    check: str = ""


class Protect(Operation):
    """Enable and force row-level security on `table`; only the named roles have access."""

    reversible = True
    reduces_to_sql = True

    def __init__(
        self,
        table: str,
        *,
        app: Grant | None = None,
        auth: Grant | None = None,
        relay: Grant | None = None,
        staff: Grant | None = None,
    ) -> None:
        self.table = table
        self.app = app
        self.auth = auth
        self.relay = relay
        self.staff = staff

    @property
    def grants(self) -> dict[DatabaseRole, Grant]:
        named = {
            DatabaseRole.APP: self.app,
            DatabaseRole.AUTH: self.auth,
            DatabaseRole.RELAY: self.relay,
            DatabaseRole.STAFF: self.staff,
        }
        return {role: grant for role, grant in named.items() if grant is not None}

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """Change nothing: models do not know of policies."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        table = schema_editor.quote_name(self.table)
        schema_editor.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        schema_editor.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
        for role, grant in self.grants.items():
            schema_editor.execute(f"GRANT {grant.privileges} ON {table} TO {role}")
            schema_editor.execute(
                f"CREATE POLICY {role} ON {table} TO {role} "
                f"USING ({grant.rows}) WITH CHECK ({grant.check or grant.rows})"
            )

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        table = schema_editor.quote_name(self.table)
        for role in self.grants:
            schema_editor.execute(f"DROP POLICY {role} ON {table}")
            schema_editor.execute(f"REVOKE ALL ON {table} FROM {role}")
        schema_editor.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
        schema_editor.execute(f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY")

    def describe(self) -> str:
        return f"Protect {self.table} by row-level security"


@contextmanager
def seen_by_owner(schema_editor: BaseDatabaseSchemaEditor, table: str) -> Iterator[None]:
    """Let a migration read and write the rows of a protected table.

    Row security binds the owner as well: without this, rows would be silently invisible.
    """
    name = schema_editor.quote_name(table)
    schema_editor.execute(f"ALTER TABLE {name} NO FORCE ROW LEVEL SECURITY")
    yield
    schema_editor.execute(f"ALTER TABLE {name} FORCE ROW LEVEL SECURITY")
