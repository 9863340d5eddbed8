"""A connection that is pushed what it subscribed to."""

from __future__ import annotations

from typing import Any

import redis
from redis.connection import AbstractConnection


class Listener:
    """Sends commands and takes pushes over one connection, by redis-py's own means."""

    def __init__(self, client: redis.Redis) -> None:
        self._connection: AbstractConnection = client.connection_pool.get_connection()
        self.pushed: list[list[Any]] = []

    def ask(self, *words: object) -> Any:
        """Return the reply; pushes that come before it are kept."""
        self._connection.send_command(*words)  # type: ignore[no-untyped-call]
        while True:
            answer = self._connection.read_response(push_request=True)
            if not _is_push(answer):
                return answer
            self.pushed.append(answer)

    def next_push(self) -> list[Any]:
        """Wait for a push."""
        if self.pushed:
            return self.pushed.pop(0)
        answer = self._connection.read_response(push_request=True)
        assert _is_push(answer), answer
        return list(answer)

    def publications(self, count: int) -> list[dict[str, Any]]:
        """Wait for so many publications."""
        pushes = [self.next_push() for _ in range(count)]
        assert {push[0] for push in pushes} <= {"rb.publication"}, pushes
        return [push[2] for push in pushes]

    def close(self) -> None:
        self._connection.disconnect()  # type: ignore[no-untyped-call]


def _is_push(answer: Any) -> bool:
    return isinstance(answer, list) and bool(answer) and str(answer[0]).startswith("rb.")
