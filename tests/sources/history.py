"""Random transactions on a table, and its contents after each of them."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import Any

import psycopg

from rillbase_native import Value
from tests.sources.upstream import Database, FollowedCollection

Rows = dict[str, Any]
CREATE = (
    (
        "CREATE TABLE things (id int PRIMARY KEY, name text NOT NULL, flag bool, big text, "
        "nested jsonb, number bigint, lines text[])"
    ),
    # Kept beside the row from 2 kB on, so that updates leave it out.
    "ALTER TABLE things ALTER big SET STORAGE EXTERNAL",
)
_ROWS = "SELECT id, to_jsonb(t) || jsonb_build_object('_id', id) FROM things t"
KEYS = 30


@dataclass
class History:
    """One writer's transactions."""

    database: Database
    random: random.Random
    #: The log position after each transaction, and the rows at that position.
    states: list[tuple[int, Rows]] = field(default_factory=list)

    def begin(self) -> None:
        self.states.append((self.database.lsn(), self.rows()))

    def rows(self) -> Rows:
        return {str(key): row for key, row in self.database.rows(_ROWS)}

    def step(self) -> None:
        """Make one transaction, which may be rolled back."""
        with self.database.connection.transaction() as transaction:
            for _ in range(self.random.choice([1, 1, 2, 5, 40])):
                self._part()
            if self.random.random() < 0.15:
                raise psycopg.Rollback(transaction)
        self.states.append((self.database.lsn(), self.rows()))

    def _part(self) -> None:
        if self.random.random() < 0.8:
            self._change()
            return
        with self.database.connection.transaction() as savepoint:
            self._change()
            self._change()
            if self.random.random() < 0.5:
                raise psycopg.Rollback(savepoint)

    def _change(self) -> None:
        key, other = self.random.randrange(KEYS), self.random.randrange(KEYS)
        run = self.database.connection.execute
        match self.random.randrange(8):
            case 0 | 1 | 2:
                big = "x" * self.random.choice([3, 3_000, 30_000]) + str(self.random.random())
                nested = json.dumps({"a": [1, None, {"b": self.random.random() < 0.5}]})
                run(
                    "INSERT INTO things VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT (id) "
                    "DO UPDATE SET name = excluded.name, flag = excluded.flag, "
                    "big = excluded.big",
                    (key, f"n{other}", None, big, nested, 2**40 + other, ["a,b", None, '"']),
                )
            case 3 | 4:
                run("UPDATE things SET name = %s WHERE id = %s", (f"u{other}", key))
            case 5:
                run("DELETE FROM things WHERE id = %s", (key,))
            case 6:
                # The row's large value is not sent, and its key changes.
                run(
                    "UPDATE things SET id = %s WHERE id = %s "
                    "AND NOT EXISTS (SELECT FROM things WHERE id = %s)",
                    (other, key, other),
                )
            case _:
                run("UPDATE things SET flag = NOT coalesce(flag, false) WHERE id < %s", (key,))

    def possible(self, confirmed: int) -> list[Rows]:
        """Return the possible documents at a position of the log.

        A position between two recorded ones is before or after a commit.
        """
        before = [rows for lsn, rows in self.states if lsn <= confirmed]
        after = [rows for lsn, rows in self.states if lsn > confirmed]
        return [before[-1] if before else {}, *after[:1]]


def documents_at(postgres_url: str, followed: FollowedCollection) -> tuple[int, bool, Rows]:
    """Return the position, whether the copy is complete, and the documents, all from one
    snapshot.
    """
    collection = followed.things.collection.pk
    with psycopg.connect(postgres_url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        row = connection.execute(
            "SELECT confirmed, is_copied FROM sources_source WHERE collection_id = %s", [collection]
        ).fetchone()
        rows = connection.execute(
            "SELECT body FROM documents_document WHERE collection_id = %s AND body IS NOT NULL",
            [collection],
        ).fetchall()
    documents = [json.loads(Value.from_bson(bytes(body)).ejson()) for (body,) in rows]
    confirmed, is_copied = row or (0, False)
    return confirmed, is_copied, {str(document["_id"]): document for document in documents}
