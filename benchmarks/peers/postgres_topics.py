"""Publishing and subscribing on PostgreSQL: indexed tables, one pipelined statement per operation.

Each statement inserts its record and finds its matches, like one operation of the storage node.
Statements are prepared and sent in pipelines over as many connections as the node gets.
Transactions commit with `synchronous_commit` off, like those of the node in `buffered` mode.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from pathlib import Path

import psycopg

from rillbase_server.launcher.embedded import EmbeddedPostgres

_SCHEMA = """
CREATE TABLE news (place int, at timestamptz, until timestamptz, data bytea);
CREATE INDEX ON news (place, at DESC);
CREATE TABLE wishes (place int, since timestamptz, until timestamptz);
CREATE INDEX ON wishes (place, until DESC);
"""
_PUBLISH = """
WITH made AS (INSERT INTO news VALUES (%(place)s, now(), now() + '20 s', %(data)s))
SELECT count(*) FROM wishes
WHERE place = %(place)s AND until >= now() AND since <= now()
"""
_SUBSCRIBE = """
WITH made AS (INSERT INTO wishes VALUES (%(place)s, now() - interval '10 s', now() + '10 s'))
SELECT data FROM news
WHERE place = %(place)s AND at >= now() - interval '10 s' AND until >= now()
"""
_PLACES = 250_000
_PIPELINE = 64
_DATA = b"x" * 130
#: Spreads numbers over the places.
_FACTOR = 0x9E3779B97F4A7C15


def rate(seconds: float, connections: int) -> float:
    """Return the operations per second, with three subscriptions per publication."""
    with tempfile.TemporaryDirectory(prefix="rillbase-postgres-") as directory:
        # Started as root, the server runs as another user, which needs access.
        Path(directory).chmod(0o755)
        with EmbeddedPostgres(Path(directory) / "postgres", superuser_password="bench") as server:
            return _rate_of(server.url, seconds, connections)


def _rate_of(url: str, seconds: float, connections: int) -> float:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_SCHEMA)
    context = multiprocessing.get_context("spawn")
    with context.Pool(connections) as pool:
        tasks = [(url, seconds, number) for number in range(connections)]
        return sum(pool.starmap(_drive, tasks))


def _drive(url: str, seconds: float, number: int) -> float:
    done, place = 0, number << 40
    with psycopg.connect(url, autocommit=True, prepare_threshold=0) as connection:
        connection.execute("SET synchronous_commit = off")
        began = time.monotonic()
        while time.monotonic() < began + seconds:
            with connection.pipeline() as pipeline, connection.cursor() as cursor:
                for _ in range(_PIPELINE):
                    place += 1
                    parameters = {"place": place * _FACTOR % 2**64 % _PLACES, "data": _DATA}
                    cursor.execute(_SUBSCRIBE if place % 4 else _PUBLISH, parameters)
                    # A separate transaction each: later ones do not wait for it.
                    pipeline.sync()
            done += _PIPELINE
        return done / (time.monotonic() - began)
