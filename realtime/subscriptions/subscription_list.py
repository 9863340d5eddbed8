"""Puts the records of all processes together, and asks a process to end a subscription."""

from __future__ import annotations

import json
import time
from functools import lru_cache
from typing import cast
from uuid import UUID

from redis.exceptions import RedisError

from foundation import server_messages
from foundation.environment import environment
from foundation.errors import NotFound, Unavailable
from foundation.json_types import JsonObject
from foundation.resp_pipeline import Argument
from foundation.valkey_sockets import ValkeySockets
from foundation.valkey_wire import Reply
from realtime.subscriptions import names

ANSWER_TIMEOUT_S = 2.0
CONNECT_TIMEOUT_S = 0.5
KILL_LIFETIME_S = 30


def listed(tenant_id: UUID) -> list[JsonObject]:
    """Return a tenant's subscriptions, the oldest first. They are up to two seconds old."""
    since = int(time.time()) - names.RECORD_LIFETIME_S
    processes = _call("ZRANGEBYSCORE", names.processes(tenant_id), since, "+inf")
    if not isinstance(processes, list) or not processes:
        return []
    keys = [
        names.record(tenant_id, process_parts.decode())
        for process_parts in processes
        if isinstance(process_parts, bytes)
    ]
    records = _call("MGET", *keys)
    rows: list[JsonObject] = []
    for record in records if isinstance(records, list) else []:
        if isinstance(record, bytes):
            rows += cast("list[JsonObject]", json.loads(record))
    return sorted(rows, key=lambda row: -float(str(row["age_s"])))


def end(tenant_id: UUID, public: str) -> None:
    """Request the end of one of the tenant's subscriptions, or raise `NotFound`."""
    parts = names.split(public)
    if parts is None or all(row["id"] != public for row in listed(tenant_id)):
        raise NotFound("The subscription does not exist.")
    process, subscription = parts
    _call("SADD", names.kills(process), subscription)
    _call("EXPIRE", names.kills(process), KILL_LIFETIME_S)
    # The process reads that set several times a second; this is sooner.
    message: JsonObject = {"type": names.ENDED, "tenant": str(tenant_id), "id": public}
    server_messages.send(server_messages.tenant_group(tenant_id), message)


def _call(*command: Argument) -> Reply:
    try:
        return _sockets().call(*command)
    except RedisError:
        raise Unavailable(
            "Subscriptions cannot be listed at the moment. Retry.", headers={"Retry-After": "1"}
        ) from None


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
