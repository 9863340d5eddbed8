"""Killed again and again under many clients, the node keeps what it has acknowledged."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
import redis

from tests.own_storage_node import OwnStorageNode, ask, token_of
from tests.storage_engine.node.listener import Listener
from tests.waiting import wait_until

AWAY = (redis.ConnectionError, redis.TimeoutError)
PUBLISHERS = 3


class Publisher:
    """Publishes numbered names, each until it is acknowledged."""

    def __init__(self, node: OwnStorageNode, number: int) -> None:
        self._node = node
        self._number = number
        self.acknowledged: dict[str, int] = {}

    def run(self, may_end: Callable[[], bool]) -> None:
        with self._node.client("crash", token_of("crash"), protocol=3) as client:
            for number in count():
                if may_end():
                    return
                name = f"{self._number}.{number}"
                self.acknowledged[name] = self._publish(client, name)

    def _publish(self, client: redis.Redis, name: str) -> int:
        while True:
            try:
                answer = ask(client, "RB.PUB", "news", "ID", "1", "NAME", name, "ONCE")
            except AWAY:
                continue
            return int(answer["position"])


class Subscriber:
    """Listens to a subscription, acknowledges each tenth position, and comes back after a crash."""

    def __init__(self, node: OwnStorageNode, sid: str) -> None:
        self._node = node
        self._sid = sid
        self.received: dict[int, str] = {}
        self.acknowledged = 0
        self.repeated: list[int] = []

    def run(self, has_all: Callable[[], bool]) -> None:
        while not has_all():
            try:
                self._listen(has_all)
            except AWAY:
                continue

    def _listen(self, has_all: Callable[[], bool]) -> None:
        client = self._node.client("crash", token_of("crash"), protocol=3, socket_timeout=0.5)
        listener = Listener(client)
        try:
            listener.ask("RB.SUB.RESUME", self._sid)
            while not has_all():
                self._take(listener)
        finally:
            listener.close()
            client.close()

    def _take(self, listener: Listener) -> None:
        [publication] = listener.publications(1)
        position = publication["position"]
        if position <= self.acknowledged:
            self.repeated.append(position)
        self.received[position] = publication["name"]
        if len(self.received) % 10 == 0:
            listener.ask("RB.SUB.ACK", self._sid, position)
            self.acknowledged = position


def crash_loop(node: OwnStorageNode, crashes: int) -> tuple[list[Publisher], Subscriber]:
    with node.namespace("crash", protocol=3) as client:
        ask(client, "RB.TOPIC.CREATE", "news")
        sid = ask(client, "RB.SUB", "news", "ID", "", "UNTIL", "+1d")["subscription"]
    publishers = [Publisher(node, number) for number in range(PUBLISHERS)]
    subscriber = Subscriber(node, sid)
    ends = threading.Event()

    def acknowledged() -> int:
        return sum(len(publisher.acknowledged) for publisher in publishers)

    def has_all() -> bool:
        return (
            ends.is_set()
            and not any(thread.is_alive() for thread in publishing)
            and (len(subscriber.received) >= acknowledged())
        )

    publishing = [
        threading.Thread(target=publisher.run, args=(ends.is_set,)) for publisher in publishers
    ]
    listening = threading.Thread(target=subscriber.run, args=(has_all,))
    for thread in (*publishing, listening):
        thread.start()
    try:
        for _ in range(crashes):
            before = acknowledged()
            wait_until(lambda: acknowledged() >= before + 40, what="work between crashes")  # noqa: B023
            node.kill()
            node.start()
    finally:
        ends.set()
        for thread in publishing:
            thread.join()
    listening.join(60)
    assert not listening.is_alive(), (len(subscriber.received), acknowledged())
    return publishers, subscriber


def check(node: OwnStorageNode, publishers: list[Publisher], subscriber: Subscriber) -> None:
    acknowledged: dict[int, str] = {}
    for publisher in publishers:
        acknowledged |= {position: name for name, position in publisher.acknowledged.items()}
    kept: dict[int, str] = {}
    with node.client("crash", token_of("crash"), protocol=3) as client:
        last = 0
        while page := ask(client, "RB.DATA", "news", "ID", "", "AFTER", last):
            kept |= {one["position"]: one["name"] for one in page}
            last = page[-1]["position"]
    assert kept == acknowledged, "what is kept is what was acknowledged, each name once"
    assert subscriber.received == acknowledged, "the subscriber was told of all"
    assert subscriber.repeated == [], "nothing up to an acknowledged position came again"


def test_acknowledged_writes_are_neither_lost_nor_duplicated(node: OwnStorageNode) -> None:
    check(node, *crash_loop(node, crashes=4))


@pytest.mark.long
def test_nothing_acknowledged_is_lost_in_many_crashes(node: OwnStorageNode) -> None:
    check(node, *crash_loop(node, crashes=60))


def test_all_data_survives_an_orderly_stop(node: OwnStorageNode) -> None:
    with node.namespace("kept", protocol=3) as client:
        ask(client, "RB.TOPIC.CREATE", "news", "KIND", "flat", "RETENTION", "2h")
        subscription: dict[str, Any] = ask(client, "RB.SUB", "news", "ID", "1")
        sid = subscription["subscription"]
        first = ask(client, "RB.PUB", "news", "ID", "1", "NAME", "a")["position"]
        ask(client, "RB.PUB", "news", "ID", "1", "NAME", "b")
        ask(client, "RB.SUB.ACK", sid, first)
        ask(client, "RB.KV.SET", "key", "value")
        topics = ask(client, "RB.TOPIC.LIST")
    assert node.stop() == 0
    node.start()
    with node.namespace("kept", protocol=3) as client:
        assert ask(client, "RB.TOPIC.LIST") == topics
        [[_, publications]] = ask(client, "RB.SUB.READ", sid, ">")
        assert [one["name"] for one in publications] == ["b"]
        assert ask(client, "RB.KV.GET", "key") == "value"


def test_the_administrator_can_end_the_node(node: OwnStorageNode) -> None:
    with node.namespace("kept") as client:
        ask(client, "RB.KV.SET", "key", "value")
    with node.client() as admin, pytest.raises(redis.ConnectionError):
        ask(admin, "SHUTDOWN")
    assert node.ended() == 0
    node.start()
    with node.namespace("kept") as client:
        assert ask(client, "RB.KV.GET", "key") == "value"
