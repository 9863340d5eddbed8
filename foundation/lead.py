"""Leader election: the process that holds an advisory lock leads."""

from __future__ import annotations

import contextlib
import threading

import psycopg

from foundation.database_roles import DatabaseRole
from foundation.environment import environment

#: Advisory locks of no other code have these names.
_LOCK = "SELECT pg_try_advisory_lock(hashtext('rillbase:' || %s), 0)"


class Lead:
    """One process's claim to the leadership called `name`.

    Its methods block, and may be called by any thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._connection: psycopg.Connection | None = None
        self._lock = threading.Lock()
        self._over = False

    @property
    def is_leader(self) -> bool:
        """Whether the lock was held when it was last checked."""
        return self._connection is not None

    def take(self) -> bool:
        """Take the lock, or check that it is still held. Return whether this process leads."""
        with self._lock:
            if self._over:
                return False
            if self._connection is None:
                self._connection = _acquire(self._name)
            else:
                self._check(self._connection)
            return self._connection is not None

    def end(self) -> None:
        """Release the leadership, even if another thread is currently taking the lock."""
        with self._lock:
            self._over = True
            self._close()

    def _check(self, connection: psycopg.Connection) -> None:
        try:
            connection.execute("SELECT 1")
        except psycopg.Error:
            self._close()
            raise

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(psycopg.Error):
                connection.close()


def _acquire(name: str) -> psycopg.Connection | None:
    """Return a connection that holds the lock, unless another process holds it."""
    connection = psycopg.connect(
        environment().role_url(DatabaseRole.RELAY),
        autocommit=True,
        application_name=f"rillbase:{name}-lead",
        connect_timeout=5,
    )
    row = connection.execute(_LOCK, (name,)).fetchone()
    if row is not None and row[0]:
        return connection
    connection.close()
    return None
