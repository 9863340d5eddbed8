"""When new nodes have taken over partitions, and when they have read their data."""

from __future__ import annotations

import json
import threading
import time
from types import TracebackType
from typing import Self, cast

import redis

LOOK_S = 0.02


class NodesLife:
    """Polls the leases of all nodes for the duration of the block."""

    def __init__(self, valkey: redis.Redis) -> None:
        self._valkey = valkey
        #: When the last new node got its partition, and when the last of them became ready. None:
        #: no node is new.
        self.held_s: float | None = None
        self.watched_s: float | None = None
        self._before = self._look()
        self._new: set[tuple[str, int]] = set()
        self._watching: set[tuple[str, int]] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()
        self._valkey.close()

    def _run(self) -> None:
        while not self._over.wait(LOOK_S):
            try:
                watches_by_node = self._look()
            except redis.RedisError:
                continue
            self._note(watches_by_node, time.monotonic())

    def _note(self, watches_by_node: dict[tuple[str, int], bool], now_s: float) -> None:
        for node, watches in watches_by_node.items():
            if node in self._before:
                continue
            if node not in self._new:
                self._new.add(node)
                self.held_s = now_s
            if watches and node not in self._watching:
                self._watching.add(node)
                self.watched_s = now_s

    def _look(self) -> dict[tuple[str, int], bool]:
        """Return which node has which token, and whether it is ready."""
        watches_by_node = {}
        for key in self._valkey.scan_iter("{rillbase}:events:*:lease:*"):
            token, report = cast("list[bytes | None]", self._valkey.hmget(key, "token", "report"))
            if token is not None:
                state = json.loads(report or b"{}").get("state")
                watches_by_node[key.decode(), int(token)] = state == "running"
        return watches_by_node
