"""The restart of one filter node among very many queries.

The queries are registered in bulk, and there is neither an app server nor PostgreSQL, as in
benchmarks/grid.py. While writes continue, one filter node is killed and started again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from redis.exceptions import RedisError

from benchmarks.support.grid_run import LoadGenerator, Run, event_layer, node_reports, running_grid
from foundation.valkey_wire import ValkeyWire
from realtime.grid.layout import NodeSpec

#: How long the writes go on before the node is killed.
_HEALTHY_S = 5.0
TIMEOUT_S = 120.0
_POLL_S = 0.2
#: A node that reads its stream without delay has this lag at most.
_CURRENT_US = 1_000_000
#: The limit of one call to the event layer, which does nothing else meanwhile.
CALL_MS = 5.0


@dataclass(frozen=True, slots=True)
class NodeRestart:
    """What the restart of a node costs."""

    #: The load generator's results: for all nodes before and after, for the others meanwhile.
    before: dict[str, float]
    during: dict[str, float]
    after: dict[str, float]
    #: From the kill until the new node watches all queries; None: not within the timeout.
    complete_s: float | None
    #: How many of the other nodes lost their lease.
    interrupted: int
    #: Durations of the calls to the event layer that exceeded the limit, with their commands.
    slow_calls: list[tuple[float, str]]


def measure(program: Path, run: Run) -> NodeRestart:
    """Register the queries, kill one node, and wait until it is complete again."""
    nodes = run.grid.nodes()
    victim, *others = nodes
    if victim.write_partition is None:
        raise ValueError("the first node is a filter node")
    with (
        running_grid(run.grid, nodes) as (valkey, processes),
        LoadGenerator(program, run, valkey.url) as load,
        ThreadPoolExecutor(1) as writing,
    ):
        before = load.measure()
        tokens = asyncio.run(_tokens(valkey.url, run, nodes))
        asyncio.run(_watch_calls(valkey.url))
        measured = writing.submit(load.measure, [victim.write_partition])
        time.sleep(_HEALTHY_S)
        killed = time.monotonic()
        processes.kill(victim)
        processes.start(victim)
        complete_s = asyncio.run(_until_complete(valkey.url, run, victim, tokens[victim], killed))
        during = measured.result()
        slow_calls = asyncio.run(_slow_calls(valkey.url))
        later = asyncio.run(_tokens(valkey.url, run, others))
        interrupted = sum(tokens[node] != later[node] for node in others)
        return NodeRestart(before, during, load.measure(), complete_s, interrupted, slow_calls)


async def _until_complete(
    url: str, run: Run, node: NodeSpec, token: int, killed_s: float
) -> float | None:
    """Wait until a node's next holder watches all queries and has handled what was written
    meanwhile.
    """
    while (took_s := time.monotonic() - killed_s) < TIMEOUT_S:
        try:
            (report,) = await node_reports(url, run.grid, [node])
            tokens = await _tokens(url, run, [node])
        except RedisError:
            continue
        if (
            tokens[node] != token
            and report.get("state") == "running"
            and int(str(report["queries"])) >= run.queries
            and int(str(report["entries"])) > 0
            and int(str(report["lag_us"])) <= _CURRENT_US
        ):
            return took_s
        await asyncio.sleep(_POLL_S)
    return None


async def _tokens(url: str, run: Run, nodes: Sequence[NodeSpec]) -> dict[NodeSpec, int]:
    wire = event_layer(url)
    layer = run.grid.layer(wire)
    _, leases = await layer.leases([node.name for node in nodes])
    await wire.aclose()
    return {node: leases[node.name].token if node.name in leases else 0 for node in nodes}


async def _watch_calls(url: str) -> None:
    wire = event_layer(url)
    limit_us = str(round(CALL_MS * 1_000))
    await wire.call("CONFIG", "SET", "slowlog-log-slower-than", limit_us, "slowlog-max-len", "1000")
    await wire.call("SLOWLOG", "RESET")
    await wire.aclose()


async def _slow_calls(url: str) -> list[tuple[float, str]]:
    wire = event_layer(url)
    calls = await _logged(wire)
    await wire.aclose()
    return sorted(calls, reverse=True)


async def _logged(wire: ValkeyWire) -> list[tuple[float, str]]:
    calls = []
    entries = await wire.call("SLOWLOG", "GET", "1000")
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, list) and isinstance(entry[3], list):
            words = [word.decode() for word in entry[3][:2] if isinstance(word, bytes)]
            calls.append((int(str(entry[2])) / 1_000, " ".join(words)))
    return calls
