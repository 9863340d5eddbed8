"""Somebody's own PostgreSQL, and a collection whose documents come from a table of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from rillbase_server.launcher.embedded import EmbeddedPostgres
from tests.caller import Caller, with_key
from tests.documents.collection import MadeCollection, make_collection
from tests.make import unique
from tests.waiting import wait_until

Json = dict[str, Any]
#: What a server needs to tell of its changes, and room for the slots of many tests.
SETTINGS = {
    "wal_level": "logical",
    "max_replication_slots": "60",
    "max_wal_senders": "60",
    "max_worker_processes": "8",
}


@contextmanager
def running_server(directory: Path) -> Iterator[EmbeddedPostgres]:
    """Run a server of somebody's own until the block ends."""
    server = EmbeddedPostgres(
        directory, superuser_password="theirs", durable=False, settings=SETTINGS
    )
    with server:
        yield server


@dataclass
class Database:
    """One database of it, and a connection as its owner."""

    url: str
    connection: psycopg.Connection

    def run(self, *statements: str) -> None:
        """Run statements as one transaction."""
        with self.connection.transaction():
            for statement in statements:
                self.connection.execute(statement)

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(statement).fetchall()

    def lsn(self) -> int:
        """Return the place behind everything that has been committed."""
        ((lsn,),) = self.rows("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn")
        return int(lsn)


@contextmanager
def database(server: EmbeddedPostgres) -> Iterator[Database]:
    """Make a database that nobody else has."""
    name = unique("shop")
    with psycopg.connect(server.url, autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    url = server.url.rpartition("/")[0] + f"/{name}"
    with psycopg.connect(url, autocommit=True) as connection:
        yield Database(f"{url}?sslmode=disable", connection)


@dataclass
class Followed:
    """A collection that has a source."""

    things: MadeCollection
    admin: Caller
    database: Database

    @property
    def path(self) -> str:
        return f"{collections(self.things)}/{self.things.name}/source"

    def shown(self) -> Json:
        answer = self.admin.get(self.path)
        assert answer.status_code == 200, answer.text
        found: Json = answer.json()
        return found

    def condition(self) -> str:
        return str((self.shown()["condition"] or {}).get("code", ""))

    def until_state(self, *states: str) -> Json:
        """Wait until the source says so."""
        wait_until(lambda: self.shown()["state"] in states, what=f"the source to be {states}")
        return self.shown()

    def until_condition(self, code: str) -> Json:
        wait_until(lambda: self.condition() == code, what=f"the condition {code}")
        return self.shown()

    def until_copied_for(self, reason: str) -> Json:
        """Wait until it is live again after a copy that was begun for a reason."""

        def holds() -> bool:
            shown = self.shown()
            return bool(shown["copy_reason"] == reason and shown["state"] == "live")

        wait_until(holds, what=f"a copy because of {reason}")
        return self.shown()

    def items(self) -> list[Json]:
        answer = self.things.ask({"limit": 10_000})
        assert answer.status_code == 200, answer.text
        found: list[Json] = answer.json()["items"]
        return found

    def documents(self) -> dict[str, Json]:
        """Return all documents, by `_id` as text."""
        return {str(each["id"]): each["document"] for each in self.items()}

    def until_count(self, count: int) -> None:
        wait_until(lambda: len(self.items()) == count, what=f"{count} documents")

    def until_shows(self, wanted: dict[str, Json]) -> None:
        """Wait until the documents are these."""
        wait_until(lambda: self.documents() == wanted, what="the documents to be the rows")


def collections(things: MadeCollection) -> str:
    return f"/api/v1/tenants/{things.made.slug}/collections"


def declare(things: MadeCollection, database: Database, **members: object) -> Any:
    """Ask for a source of a collection; return the answer."""
    admin = with_key(things.caller.base, things.made.admin_key)
    body = {"connection": database.url, **members}
    return admin.post(f"{collections(things)}/{things.name}/source", body)


def follow(server: str, database: Database, table: str, **members: object) -> Followed:
    """Let a new collection's documents come from a table."""
    things = make_collection(server)
    answer = declare(things, database, table=table, **members)
    assert answer.status_code == 201, answer.text
    return Followed(things, with_key(server, things.made.admin_key), database)
