"""A customer's PostgreSQL, and a collection whose documents come from one of its tables."""

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
from tests.documents.collection import CollectionClient, make_collection
from tests.make import unique
from tests.waiting import wait_until

Json = dict[str, Any]
#: Settings for logical replication, with slots for many tests.
SETTINGS = {
    "wal_level": "logical",
    "max_replication_slots": "60",
    "max_wal_senders": "60",
    "max_worker_processes": "8",
}


@contextmanager
def running_server(directory: Path) -> Iterator[EmbeddedPostgres]:
    """Run a customer's server until the block ends."""
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
        """Return the log position after everything that has been committed."""
        ((lsn,),) = self.rows("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn")
        return int(lsn)


@contextmanager
def database(server: EmbeddedPostgres) -> Iterator[Database]:
    """Create a database for one test."""
    name = unique("shop")
    with psycopg.connect(server.url, autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    url = server.url.rpartition("/")[0] + f"/{name}"
    with psycopg.connect(url, autocommit=True) as connection:
        yield Database(f"{url}?sslmode=disable", connection)


@dataclass
class FollowedCollection:
    """A collection that has a source."""

    things: CollectionClient
    admin: Caller
    database: Database

    @property
    def path(self) -> str:
        return f"{collections(self.things)}/{self.things.name}/source"

    def shown(self) -> Json:
        answer = self.admin.get(self.path)
        assert answer.status_code == 200, answer.text
        body: Json = answer.json()
        return body

    def condition(self) -> str:
        return str((self.shown()["condition"] or {}).get("code", ""))

    def until_state(self, *states: str) -> Json:
        """Wait until the source reports this state."""
        wait_until(lambda: self.shown()["state"] in states, what=f"the source to be {states}")
        return self.shown()

    def until_condition(self, code: str) -> Json:
        wait_until(lambda: self.condition() == code, what=f"the condition {code}")
        return self.shown()

    def until_copied_for(self, reason: str) -> Json:
        """Wait until it is live again after a copy with this reason."""

        def holds() -> bool:
            shown = self.shown()
            return bool(shown["copy_reason"] == reason and shown["state"] == "live")

        wait_until(holds, what=f"a copy because of {reason}")
        return self.shown()

    def items(self) -> list[Json]:
        answer = self.things.ask({"limit": 10_000})
        assert answer.status_code == 200, answer.text
        result: list[Json] = answer.json()["items"]
        return result

    def documents(self) -> dict[str, Json]:
        """Return all documents, by `_id` as text."""
        return {str(item["id"]): item["document"] for item in self.items()}

    def until_count(self, count: int) -> None:
        wait_until(lambda: len(self.items()) == count, what=f"{count} documents")

    def until_shows(self, expected: dict[str, Json]) -> None:
        """Wait until the documents are these."""
        wait_until(lambda: self.documents() == expected, what="the documents to be the rows")


def collections(things: CollectionClient) -> str:
    return f"/api/v1/tenants/{things.account.slug}/collections"


def declare(things: CollectionClient, database: Database, **members: object) -> Any:
    """Declare a source of a collection; return the response."""
    admin = with_key(things.caller.base, things.account.admin_key)
    body = {"connection": database.url, **members}
    return admin.post(f"{collections(things)}/{things.name}/source", body)


def follow(server: str, database: Database, table: str, **members: object) -> FollowedCollection:
    """Create a collection whose documents come from a table."""
    things = make_collection(server)
    answer = declare(things, database, table=table, **members)
    assert answer.status_code == 201, answer.text
    return FollowedCollection(things, with_key(server, things.account.admin_key), database)
