"""The difference between the clocks that the times of evidence come from.

The database's clock dates writes and marks. Valkey's dates entries of streams, and what hubs show
and send.
"""

from __future__ import annotations

import time
from uuid import UUID

from redis.exceptions import ResponseError

from documents.store.database import pool
from foundation import event_server
from foundation.postgres import Statement
from foundation.valkey_wire import Reply

_DATABASE_TIME = Statement("SELECT clock_timestamp()")
_US_PER_S = 1_000_000


async def valkey_ahead_ms(tenant_id: UUID) -> float:
    """Return how far Valkey's clock is ahead of the database's, to a few milliseconds."""
    async with pool().session(tenant_id) as session:
        (result,) = await session.run([(_DATABASE_TIME, ())])
    started_s, database_us = time.monotonic(), result.time_us(0, 0)
    valkey_us = time_us(await event_server.wire().call("TIME"))
    passed_us = (time.monotonic() - started_s) * _US_PER_S
    return (valkey_us - database_us - passed_us) / 1000


def time_us(reply: Reply) -> int:
    """Parse the reply to `TIME`."""
    match reply:
        case [bytes(seconds), bytes(microseconds)]:
            return int(seconds) * _US_PER_S + int(microseconds)
        case _:
            raise ResponseError("TIME returned an unexpected type")
