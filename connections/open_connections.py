"""The number of a tenant's connections and subscriptions, for threads that show it to members.

Every server process reports its own numbers (`connections.quotas`); this adds them up. They are up
to four seconds old.
"""

from __future__ import annotations

from functools import lru_cache
from uuid import UUID

from redis.exceptions import RedisError

from connections.quotas import ConnectionUsage, key_of
from foundation.environment import environment
from foundation.valkey_sockets import ValkeySockets
from foundation.valkey_wire import Reply

ANSWER_TIMEOUT_S = 2.0
CONNECT_TIMEOUT_S = 0.5


def read_usage(tenant_id: UUID) -> ConnectionUsage | None:
    """Return the numbers of a tenant over all processes; None while Valkey is unavailable."""
    try:
        now = _sockets().call("TIME")
        reports = _sockets().call("HGETALL", key_of(tenant_id))
    except RedisError:
        return None
    return add_up(reports, _milliseconds(now))


def add_up(reports: Reply, now_ms: int) -> ConnectionUsage:
    """Return the sum of the reports that have not expired: process, then its numbers, in turn."""
    connections = subscriptions = 0
    for report in reports[1::2] if isinstance(reports, list) else []:
        numbers = report.split() if isinstance(report, bytes) else []
        if len(numbers) == 3 and int(numbers[2]) >= now_ms:  # noqa: PLR2004 -- see quota.lua
            connections += int(numbers[0])
            subscriptions += int(numbers[1])
    return ConnectionUsage(connections, subscriptions)


def _milliseconds(time: Reply) -> int:
    seconds, microseconds = time if isinstance(time, list) else (b"0", b"0")
    if not isinstance(seconds, bytes) or not isinstance(microseconds, bytes):
        return 0
    return int(seconds) * 1000 + int(microseconds) // 1000


@lru_cache(maxsize=1)
def _sockets() -> ValkeySockets:
    return ValkeySockets(
        environment().events,
        connect_timeout_s=CONNECT_TIMEOUT_S,
        answer_timeout_s=ANSWER_TIMEOUT_S,
    )


def close() -> None:
    """Close the connections of this process."""
    _sockets().close()
