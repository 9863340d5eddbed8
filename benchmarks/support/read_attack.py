"""Reads that no index helps, from a tenant with ordinary quotas."""

from __future__ import annotations

import asyncio
import http.client
import json
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle

#: Callers, and the documents of the collection that they read.
AT_ONCE, DOCUMENTS = 40, 20_000
TIMEOUT_S = 60.0
_INSERTED_AT_ONCE = 1_000
_TEXT = "x" * 200
_MEASURES = {"number": {"op": "count"}}


def fill(port: int, key: str, collection: str) -> None:
    """Insert the documents."""
    for first in range(0, DOCUMENTS, _INSERTED_AT_ONCE):
        numbers = range(first, first + _INSERTED_AT_ONCE)
        operations = [
            {"insert": {"_id": n, "n": n * 7919 % DOCUMENTS, "text": _TEXT}} for n in numbers
        ]
        _send(port, key, f"/v1/collections/{collection}/documents:bulk", {"operations": operations})


async def run(port: int, key: str, collection: str) -> None:
    """Attack until cancelled."""
    path, condition = f"/v1/collections/{collection}", {"n": {"$gte": 10}}
    bodies: list[tuple[str, dict[str, object]]] = [
        (f"{path}/query", {"filter": condition, "sort": [["n", 1]], "limit": 10}),
        (f"{path}/query", {"filter": condition, "group": {"by": ["n"], "measures": _MEASURES}}),
        (f"{path}/count", {"filter": condition}),
    ]
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(AT_ONCE) as callers:
        async with asyncio.TaskGroup() as attacks:
            for number in range(AT_ONCE):
                own = bodies[number % len(bodies) :] + bodies
                attacks.create_task(_again(loop, callers, (port, key), own))


async def _again(
    loop: asyncio.AbstractEventLoop,
    callers: ThreadPoolExecutor,
    server: tuple[int, str],
    bodies: list[tuple[str, dict[str, object]]],
) -> None:
    for path, body in cycle(bodies):
        await loop.run_in_executor(callers, _send, *server, path, body)


def _send(port: int, key: str, path: str, body: dict[str, object]) -> None:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    try:
        connection.request("POST", path, json.dumps(body), headers)
        connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        # The server may disconnect an attacker.
        pass
    finally:
        connection.close()
