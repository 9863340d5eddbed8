"""Stores queued writes in a small database, in a file or for as long as the program runs.

Only one program may open a file at a time; two programs would send each other's writes.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path

from rillbase.errors import QueueFailed

IN_MEMORY = ":memory:"


@dataclass(frozen=True, slots=True)
class StoredWrite:
    """A stored write."""

    number: int
    text: str
    #: When it was first sent, if ever: seconds since 1970.
    sent_at_s: float | None


class WriteStore:
    """Stores numbered texts. After a call has returned, its effect survives a crash of the program
    and the machine.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        #: A sync of the disk would block the event loop for too long.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="rillbase-queue")
        if fspath(path) != IN_MEMORY:
            # The texts are a tenant's data: other users of the machine must not read them.
            Path(path).touch(mode=0o600)
        self._database = sqlite3.connect(
            path, timeout=0, isolation_level=None, check_same_thread=False
        )
        try:
            self._database.execute("PRAGMA locking_mode=EXCLUSIVE")
            self._database.execute("PRAGMA synchronous=FULL")
            self._database.execute("BEGIN EXCLUSIVE")
            self._database.execute(
                "CREATE TABLE IF NOT EXISTS writes"
                " (number INTEGER PRIMARY KEY, text TEXT NOT NULL, sent_at_s REAL)"
            )
            self._database.execute("COMMIT")
        except sqlite3.Error as error:
            self._database.close()
            raise QueueFailed(str(error)) from error

    def load(self) -> list[StoredWrite]:
        """Return all, in their order."""
        rows = self._database.execute("SELECT number, text, sent_at_s FROM writes ORDER BY number")
        return [StoredWrite(*row) for row in rows]

    async def put(self, number: int, text: str) -> None:
        await self._do("INSERT INTO writes VALUES (?, ?, NULL)", number, text)

    async def mark(self, number: int, sent_at_s: float) -> None:
        """Record when a write was first sent."""
        await self._do("UPDATE writes SET sent_at_s = ? WHERE number = ?", sent_at_s, number)

    async def remove(self, number: int) -> None:
        await self._do("DELETE FROM writes WHERE number = ?", number)

    def close(self) -> None:
        """Close the file after pending work has finished."""
        self._thread.shutdown()
        self._database.close()

    async def _do(self, statement: str, *values: object) -> None:
        try:
            await self._run(lambda: self._database.execute(statement, values))
        except sqlite3.Error as error:
            raise QueueFailed(str(error)) from error

    async def _run(self, work: Callable[[], object]) -> None:
        # The caller may be cancelled; started work is completed, or a write might be stored too
        # late.
        await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._thread, work))
