"""Stores of tweets that are called from Python: SQLite, PostgreSQL, and our storage node.

SQLite and PostgreSQL have a table with a B-tree index on the user and the time of the last write,
and one on the time of creation. The node has a native collection with two lazy indexes.
"""

from __future__ import annotations

import json
import random
import socket
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

import hiredis
import psycopg

from benchmarks.support.own_server import TOKEN
from rillbase_native import (
    Operation,
    Operations,
    Outcomes,
    Value,
    candidate_rows,
    encode_write,
    id_key,
)
from rillbase_server.launcher.embedded import EmbeddedPostgres

#: Writes and queries that are sent before the first reply is read.
IN_FLIGHT = 32
_TEXT_BYTES = 460
_FILLING = "".join(random.Random(1).choices("etaoin shrdlu cmfwyp", k=1 << 20))
_COLLECTION = "tweets"
#: Tweets of one write that loads the node.
BULK = 500
_SQLITE_TABLE = """
CREATE TABLE tweets
    (id INTEGER PRIMARY KEY, user_id INTEGER, created INTEGER, updated INTEGER, body TEXT)
"""


class TweetRow(NamedTuple):
    """A tweet's indexed values."""

    id: int
    user: int
    created_ms: int
    updated_ms: int

    @property
    def text(self) -> str:
        """Text and attachments."""
        start = self.id * 7919 % (len(_FILLING) - _TEXT_BYTES)
        return _FILLING[start : start + _TEXT_BYTES]

    @property
    def body(self) -> str:
        """The document as JSON."""
        return json.dumps(
            {
                "_id": self.id,
                "user": self.user,
                "created": self.created_ms,
                "text": self.text,
                "language": "en",
                "retweets": self.id % 1000,
            }
        )


def read_rows(path: Path) -> list[TweetRow]:
    """Read what the program for measurements has dumped."""
    return [TweetRow(*map(int, line.split())) for line in path.read_text().splitlines()]


class TweetPeer(Protocol):
    """A store of tweets."""

    def write(self, rows: Sequence[TweetRow]) -> None:
        """Insert rows durably, each by itself, with some of them in flight if possible."""

    def write_together(self, rows: Sequence[TweetRow]) -> None:
        """Insert rows durably as one transaction."""

    def lookups(self, users: Sequence[int], limit: int) -> list[list[int]]:
        """Return the ids of each user's tweets that were written last, the newest first."""


class SqliteTweets:
    """Has one writer, which commits one transaction after another."""

    def __init__(self, connection: sqlite3.Connection, cache_bytes: int) -> None:
        self._connection = connection
        for statement in (
            "PRAGMA journal_mode=WAL",
            "PRAGMA synchronous=FULL",
            f"PRAGMA cache_size=-{max(cache_bytes >> 10, 1)}",
            _SQLITE_TABLE,
            "CREATE INDEX by_user ON tweets (user_id, updated)",
            "CREATE INDEX by_created ON tweets (created)",
        ):
            connection.execute(statement)

    def write(self, rows: Sequence[TweetRow]) -> None:
        for row in rows:
            self._insert([row])

    def write_together(self, rows: Sequence[TweetRow]) -> None:
        self._connection.execute("BEGIN")
        self._insert(rows)
        self._connection.execute("COMMIT")

    def _insert(self, rows: Iterable[TweetRow]) -> None:
        values = ((*row, row.body) for row in rows)
        self._connection.executemany("INSERT INTO tweets VALUES (?, ?, ?, ?, ?)", values)

    def lookups(self, users: Sequence[int], limit: int) -> list[list[int]]:
        query = "SELECT id, body FROM tweets WHERE user_id = ? ORDER BY updated DESC LIMIT ?"
        results = (self._connection.execute(query, (user, limit)).fetchall() for user in users)
        return [[row[0] for row in rows] for rows in results]


@contextmanager
def sqlite_tweets(directory: Path, cache_bytes: int) -> Iterator[SqliteTweets]:
    """Yield an empty database; each statement is a transaction."""
    path = directory / "tweets.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield SqliteTweets(connection, cache_bytes)


class PostgresTweets:
    """Statements of one connection are pipelined, each in a transaction of its own."""

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._connection = connection
        connection.execute(
            "CREATE TABLE tweets (id bigint PRIMARY KEY, user_id bigint, created bigint,"
            " updated bigint, body text)"
        )
        connection.execute("CREATE INDEX by_user ON tweets (user_id, updated)")
        connection.execute("CREATE INDEX by_created ON tweets (created)")

    def write(self, rows: Sequence[TweetRow]) -> None:
        for start in range(0, len(rows), IN_FLIGHT):
            with self._connection.pipeline() as pipeline:
                for row in rows[start : start + IN_FLIGHT]:
                    self._insert(row)
                    pipeline.sync()

    def write_together(self, rows: Sequence[TweetRow]) -> None:
        with self._connection.transaction(), self._connection.pipeline():
            for row in rows:
                self._insert(row)

    def _insert(self, row: TweetRow) -> None:
        statement = "INSERT INTO tweets VALUES (%s, %s, %s, %s, %s)"
        self._connection.execute(statement, (*row, row.body), prepare=True)

    def fill(self, rows: Sequence[TweetRow]) -> None:
        """Load rows by COPY, and count them for the planner."""
        with self._connection.cursor() as cursor:
            with cursor.copy("COPY tweets FROM STDIN") as copy:
                for row in rows:
                    copy.write_row((*row, row.body))
            cursor.execute("VACUUM ANALYZE tweets")

    def lookups(self, users: Sequence[int], limit: int) -> list[list[int]]:
        query = "SELECT id, body FROM tweets WHERE user_id = %s ORDER BY updated DESC LIMIT %s"
        ids: list[list[int]] = []
        for start in range(0, len(users), IN_FLIGHT):
            with self._connection.pipeline():
                some = users[start : start + IN_FLIGHT]
                cursors = [
                    self._connection.execute(query, (user, limit), prepare=True) for user in some
                ]
                ids += [[row[0] for row in cursor.fetchall()] for cursor in cursors]
        return ids


@contextmanager
def postgres_tweets(directory: Path) -> Iterator[PostgresTweets]:
    """Yield an empty database of a durable server."""
    with (
        EmbeddedPostgres(directory / "postgres", superuser_password="bench") as server,
        psycopg.connect(server.url, autocommit=True) as connection,
    ):
        yield PostgresTweets(connection)


class _PipelinedConnection:
    """A connection to a node, whose replies are parsed by hiredis."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self._reader = hiredis.Reader()
        self.send([("HELLO", 3, "AUTH", "bench", TOKEN)])

    def send(self, commands: Sequence[tuple[str | bytes | int, ...]]) -> list[Any]:
        """Send commands together, and return their replies."""
        packed = (hiredis.pack_command(cast("Any", command)) for command in commands)
        self.socket.sendall(b"".join(packed))
        replies: list[Any] = []
        while len(replies) < len(commands):
            reply = self._reader.gets()
            if reply is False:
                self._reader.feed(self.socket.recv(1 << 18))
                continue
            if isinstance(reply, hiredis.ReplyError):
                raise reply
            replies.append(reply)
        return replies


class NodeTweets:
    """Commands of one connection are pipelined; the node syncs those in flight together."""

    def __init__(self, connection: _PipelinedConnection) -> None:
        self._connection = connection
        self._ids: dict[bytes, int] = {}
        indexes = [
            {"number": number, "name": f"by {field}", "fields": [[field, 1]], "ready": True}
            | {"technique": "lazy"}
            for number, field in enumerate(("user", "created"), 1)
        ]
        definition = json.dumps({"write_version": 1, "indexes": indexes})
        connection.send([("RB.COL.DEFINE", _COLLECTION, definition)])

    def write(self, rows: Sequence[TweetRow]) -> None:
        for start in range(0, len(rows), IN_FLIGHT):
            self._send([[row] for row in rows[start : start + IN_FLIGHT]])

    def write_together(self, rows: Sequence[TweetRow]) -> None:
        self._send([rows])

    def fill(self, rows: Sequence[TweetRow]) -> None:
        """Load rows in large writes."""
        self._ids |= {id_key(Value.parse(str(row.id).encode())): row.id for row in rows}
        for start in range(0, len(rows), BULK):
            self._send([rows[start : start + BULK]])

    def _send(self, groups: Sequence[Sequence[TweetRow]]) -> None:
        commands: list[tuple[str | bytes | int, ...]] = []
        for rows in groups:
            inserts = [Operation.insert(Value.parse(row.body.encode())) for row in rows]
            request = encode_write(Operations(inserts), [("", 0, None)], atomic=False)
            commands.append(("RB.COL.WRITE", request, _COLLECTION, 1))
        for reply in self._connection.send(commands):
            if refusals := Outcomes.decode(reply).refusals():
                raise AssertionError(f"the node refuses a tweet: {refusals}")

    def lookups(self, users: Sequence[int], limit: int) -> list[list[int]]:
        ids: list[list[int]] = []
        for start in range(0, len(users), IN_FLIGHT):
            some = users[start : start + IN_FLIGHT]
            replies = self._connection.send([_query(user, limit) for user in some])
            rows = (candidate_rows(reply[b"rows"]) for reply in replies)
            ids += [[self._ids[row[0]] for row in some_rows] for some_rows in rows]
        return ids


def _query(user: int, limit: int) -> tuple[str | bytes | int, ...]:
    sized = ("DOCUMENTS", limit, "COUNT", limit)
    words = (json.dumps({"user": user}), '[["$updated",-1]]', *sized)
    return ("RB.COL.QUERY", _COLLECTION, 1, *words)


@contextmanager
def node_tweets(port: int) -> Iterator[NodeTweets]:
    """Yield an empty collection of a node with the namespace `bench`."""
    connection = _PipelinedConnection(port)
    with connection.socket:
        yield NodeTweets(connection)
