"""Combines the list of nodes (from the database) with their reports (from the event layer)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from uuid import UUID

from redis.exceptions import RedisError

from foundation.environment import environment
from foundation.errors import Unavailable
from foundation.json_types import JsonObject, JsonValue
from foundation.resp_pipeline import Argument
from foundation.valkey_sockets import ValkeySockets
from foundation.valkey_wire import Reply
from realtime.clusters import epochs
from realtime.clusters.proposal import NodeLoad
from realtime.events import layer
from realtime.grid.layout import GridEpoch, NodeSpec

ANSWER_TIMEOUT_S = 2.0
CONNECT_TIMEOUT_S = 0.5
_US_PER_MS = 1000
_US_PER_S = 1_000_000
_PPM = 1_000_000


def grids(tenant_id: UUID) -> list[JsonValue]:
    """Return the grid epochs that serve a tenant, each with the state of its nodes."""
    now_us = _now_us()
    return [
        {
            "epoch": grid.epoch,
            "query_partitions": grid.query_partitions,
            "write_partitions": grid.write_partitions,
            "nodes": [_describe_node(node, now_us) for node in grid.nodes()],
        }
        for grid in epochs.of_tenant(tenant_id) or epochs.shared()
    ]


def watches(grid: GridEpoch) -> bool:
    """Return whether all nodes of a grid hold their leases and are ready."""
    now_us = _now_us()
    return all(_report(node, now_us).get("state") == "running" for node in grid.nodes())


def cause(grid: GridEpoch) -> str | None:
    """Return why the supervisor of a grid cannot start its nodes, if it has reported that."""
    reply = _call("GET", layer.supervisor_key(grid.prefix, grid.epoch))
    status: JsonObject = json.loads(reply) if isinstance(reply, bytes) else {}
    reported = status.get("cause")
    return reported if isinstance(reported, str) else None


def readiness(served: Sequence[GridEpoch]) -> dict[str, JsonValue]:
    """Return figures of the newest epoch whose nodes are all ready, or else of the oldest."""
    now_us = _now_us()
    figures: dict[str, JsonValue] = {"nodes": 0, "watching": 0, "stale_query_partitions": []}
    for grid in reversed(served):
        figures = _readiness(grid, now_us)
        if not figures["stale_query_partitions"]:
            break
    return figures


def _readiness(grid: GridEpoch, now_us: int) -> dict[str, JsonValue]:
    nodes = grid.nodes()
    missing = [node for node in nodes if _report(node, now_us).get("state") != "running"]
    stale: list[JsonValue] = [*sorted({node.query_partition for node in missing})]
    return {
        "nodes": len(nodes),
        "watching": len(nodes) - len(missing),
        "stale_query_partitions": stale,
    }


def loads(grid: GridEpoch) -> list[NodeLoad]:
    """Return the load of those nodes of a grid that have reported it."""
    now_us = _now_us()
    reports = ((node, _report(node, now_us)) for node in grid.nodes())
    return [
        NodeLoad(
            is_sort_node=node.write_partition is None,
            busy=busy,
            lag_us=_number(report, "lag_us"),
            index_bytes=_number(report, "index_bytes"),
            image_bytes=_number(report, "retained_bytes"),
        )
        for node, report in reports
        if report.get("state") == "running" and (busy := _busy(report)) is not None
    ]


def queries(grid: GridEpoch) -> int:
    """Return the number of live queries of a grid."""
    keys = [layer.registry(grid.prefix, grid.epoch, n) for n in range(grid.query_partitions)]
    return sum(count for key in keys if isinstance(count := _call("HLEN", key), int))


def _describe_node(node: NodeSpec, now_us: int) -> JsonValue:
    report = _report(node, now_us)
    lag_us, memory = (
        report.get("lag_us"),
        [report.get(n) for n in ("index_bytes", "retained_bytes")],
    )
    return {
        "name": node.name,
        "kind": "sort" if node.write_partition is None else "filter",
        "query_partition": node.query_partition,
        "write_partition": node.write_partition,
        "state": report.get("state", "absent"),
        "busy": _busy(report),
        "lag_ms": lag_us / _US_PER_MS if isinstance(lag_us, int) else None,
        "queries": report.get("queries"),
        "matched": report.get("matched_documents"),
        "memory_bytes": sum(size for size in memory if isinstance(size, int)) if report else None,
        "rebuilds": report.get("rebuilds"),
    }


def _busy(report: JsonObject) -> float | None:
    """Return a node's share of a core over a minute; None if it has not reported it yet."""
    busy_ppm = report.get("busy_ppm")
    return busy_ppm / _PPM if isinstance(busy_ppm, int) else None


def _number(report: JsonObject, name: str) -> int:
    value = report.get(name)
    return value if isinstance(value, int) else 0


def _report(node: NodeSpec, now_us: int) -> JsonObject:
    """Return a node's report; empty if no node holds its partition now."""
    key = layer.lease_key(node.prefix, node.epoch, node.name)
    until, report = _pair(_call("HMGET", key, "until", "report"))
    if until is None or int(until) * _US_PER_MS <= now_us:
        return {}
    parsed: JsonObject = json.loads(report or b"{}")
    return parsed


def _now_us() -> int:
    """Return the event layer's time, which determines the end of leases."""
    seconds, micros = _pair(_call("TIME"))
    return int(seconds or 0) * _US_PER_S + int(micros or 0)


def _pair(reply: Reply) -> tuple[bytes | None, bytes | None]:
    first, second = reply if isinstance(reply, list) else (None, None)
    return (
        first if isinstance(first, bytes) else None,
        second if isinstance(second, bytes) else None,
    )


def _call(*command: Argument) -> Reply:
    try:
        return _sockets().call(*command)
    except RedisError:
        raise Unavailable(
            "The state of the grid cannot be read at the moment. Retry.",
            headers={"Retry-After": "1"},
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
