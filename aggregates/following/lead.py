"""Which process follows: the one that holds a lock of PostgreSQL's while it is connected."""

from __future__ import annotations

import contextlib

import psycopg

from foundation.database_roles import Role
from foundation.environment import environment

#: Nobody else takes an advisory lock of this name.
_LOCK = "SELECT pg_try_advisory_lock(hashtext('rillbase:views'), 0)"


class Lead:
    """One process's claim. Its methods block."""

    def __init__(self) -> None:
        self._connection: psycopg.Connection | None = None

    @property
    def held(self) -> bool:
        """Whether it was held when that was looked at last."""
        return self._connection is not None

    def take(self) -> bool:
        """Take the lock, or see that it is still held. Tell whether this process follows."""
        if self._connection is not None:
            try:
                self._connection.execute("SELECT 1")
            except psycopg.Error:
                self.release()
                raise
            return True
        connection = psycopg.connect(
            environment().role_url(Role.RELAY),
            autocommit=True,
            application_name="rillbase:views-lead",
            connect_timeout=5,
        )
        row = connection.execute(_LOCK).fetchone()
        if row is None or not row[0]:
            connection.close()
            return False
        self._connection = connection
        return True

    def release(self) -> None:
        """Let another process follow."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(psycopg.Error):
                connection.close()
