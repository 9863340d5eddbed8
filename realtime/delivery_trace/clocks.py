"""The difference between the clocks that the times of evidence come from.

The clock of the server that stores the documents dates writes: the database's, which dates marks,
too, or the storage node's. Valkey's dates entries of streams, and what hubs show and send.
"""

from __future__ import annotations

import time

from redis.exceptions import ResponseError

from documents.store.database import pool
from documents.store.facts import CollectionFacts
from foundation import event_server
from foundation.postgres import Statement
from storage_engine.node.client import client

_DATABASE_TIME = Statement("SELECT clock_timestamp()")
_US_PER_S = 1_000_000


async def valkey_ahead_ms(collection: CollectionFacts) -> float:
    """Return how far Valkey's clock is ahead of the one that dates a collection's writes, to a few
    milliseconds.
    """
    stored_us = await _time_of_writes_us(collection)
    started_s = time.monotonic()
    valkey_us = time_us(await event_server.wire().call("TIME"))
    passed_us = (time.monotonic() - started_s) * _US_PER_S
    return (valkey_us - stored_us - passed_us) / 1000


async def _time_of_writes_us(collection: CollectionFacts) -> int:
    if collection.is_native:
        return time_us(await client().call(collection.tenant_id, "TIME"))
    async with pool().session(collection.tenant_id) as session:
        (result,) = await session.run([(_DATABASE_TIME, ())])
    return result.time_us(0, 0)


def time_us(reply: object) -> int:
    """Parse the reply to `TIME`, of Valkey or the storage node."""
    match reply:
        case [bytes(seconds), bytes(microseconds)]:
            return int(seconds) * _US_PER_S + int(microseconds)
        case _:
            raise ResponseError("TIME returned an unexpected type")
