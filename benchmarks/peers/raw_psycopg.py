"""The rate of PostgreSQL for a program that only inserts: the same rows, with an outbox row each.

Runs in a separate process, over the same number of connections, with synchronous commit. `bulk`
sends batches by `unnest`, as fast as one statement allows; `single` runs one transaction per
document over connections that take turns without pause.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import time
from collections.abc import Mapping

import psycopg

_SCHEMA = """
CREATE TABLE IF NOT EXISTS peer_document (
    collection uuid, key bytea, version bigint, body bytea, key_hash int,
    created_at timestamptz, updated_at timestamptz, PRIMARY KEY (collection, key)
);
CREATE TABLE IF NOT EXISTS peer_outbox (
    id bigint GENERATED ALWAYS AS IDENTITY, collection uuid, key bytea, version bigint,
    key_hash int, xid xid8 DEFAULT pg_current_xact_id(), created_at timestamptz DEFAULT now()
);
CREATE INDEX IF NOT EXISTS peer_outbox_xid ON peer_outbox (xid);
"""
_COLLECTION = "00000000-0000-0000-0000-000000000001"
_INSERT = """
WITH written AS (
    INSERT INTO peer_document
    SELECT %s, key, 1, body, 7, now(), now() FROM unnest(%b::bytea[], %b::bytea[]) AS i(key, body)
    RETURNING collection, key, version, key_hash
) INSERT INTO peer_outbox (collection, key, version, key_hash) SELECT * FROM written
"""
_BODY = os.urandom(220)


def bulk(environment: Mapping[str, str], size: int, connections: int, seconds: float) -> float:
    """Return documents a second."""
    return _in_process(environment["DATABASE_URL"], size, connections, seconds)


def single(environment: Mapping[str, str], connections: int, seconds: float) -> float:
    """Return documents per second, one transaction each."""
    return _in_process(environment["DATABASE_URL"], 1, connections, seconds)


def _in_process(url: str, size: int, connections: int, seconds: float) -> float:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_run, (url, size, connections, seconds))


def _run(url: str, size: int, connections: int, seconds: float) -> float:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_SCHEMA)
    return asyncio.run(_drive(url, size, connections, seconds))


async def _drive(url: str, size: int, connections: int, seconds: float) -> float:
    opened = [
        await psycopg.AsyncConnection.connect(url, autocommit=True) for _ in range(connections)
    ]
    begin = time.perf_counter()
    counts = await asyncio.gather(*(_insert(one, size, begin + seconds) for one in opened))
    elapsed = time.perf_counter() - begin
    for one in opened:
        await one.close()
    return sum(counts) / elapsed


async def _insert(connection: psycopg.AsyncConnection, size: int, deadline: float) -> int:
    count = 0
    while time.perf_counter() < deadline:
        keys = [os.urandom(13) for _ in range(size)]
        await connection.execute(_INSERT, (_COLLECTION, keys, [_BODY] * size), prepare=True)
        count += size
    return count
