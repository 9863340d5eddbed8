"""Concurrent callers of a hostile tenant, which repeat calls over HTTP."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Call:
    """A request: with a body, a POST."""

    path: str
    #: JSON, or bytes of another type.
    body: dict[str, object] | bytes | None
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class Callers:
    """The attacker's concurrent callers."""

    port: int
    key: str
    number: int
    #: Of each caller, after a call.
    pause_s: float
    #: The responses, by status; 0: none.
    responses: Counter[int]

    async def run(self, calls: Iterator[Call]) -> None:
        """Send the calls until cancelled."""
        threads = ThreadPoolExecutor(self.number)
        try:
            async with asyncio.TaskGroup() as callers:
                for _ in range(self.number):
                    callers.create_task(self._repeat(threads, calls))
        finally:
            # The last calls may take long.
            threads.shutdown(wait=False, cancel_futures=True)

    async def _repeat(self, threads: ThreadPoolExecutor, calls: Iterator[Call]) -> None:
        loop = asyncio.get_running_loop()
        for call in calls:
            status = await loop.run_in_executor(threads, send, self.port, self.key, call)
            self.responses[status] += 1
            await asyncio.sleep(self.pause_s)


def send(port: int, key: str, call: Call, timeout_s: float = TIMEOUT_S) -> int:
    """Send a call; return the status of its response, or 0."""
    headers = {"Authorization": f"Bearer {key}", "Content-Type": call.content_type}
    body = json.dumps(call.body).encode() if isinstance(call.body, dict) else call.body
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout_s)
    try:
        connection.request("GET" if body is None else "POST", call.path, body, headers)
        response = connection.getresponse()
        response.read()
    except (OSError, http.client.HTTPException):
        # The server does not respond, or disconnects an attacker.
        return 0
    else:
        return response.status
    finally:
        connection.close()
