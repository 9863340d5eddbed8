"""Aggregates of the node are consistent at all times, and count each event once, despite kills."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from itertools import count

import pytest
import redis

from tests.own_storage_node import OwnStorageNode, ask, token_of
from tests.waiting import wait_until

AWAY = (redis.ConnectionError, redis.TimeoutError)
ACCOUNT = {
    "dimensions": ["owner"],
    "measures": {"sum": {"op": "sum", "field": "by", "type": "int"}, "n": {"op": "count"}},
    "rollups": [[]],
}
WHOLE = json.dumps({"group_by": []})
WRITERS = 3


class Writer:
    """Moves numbered amounts from one aggregate to the other, each as one transaction."""

    def __init__(self, node: OwnStorageNode, number: int) -> None:
        self._node = node
        self._number = number
        self.moved: list[int] = []

    def run(self, may_end: Callable[[], bool]) -> None:
        with self._node.client("crash", token_of("crash"), protocol=3) as client:
            for amount in count(1):
                if may_end():
                    return
                self._move(client, amount)
                self.moved.append(amount)

    def _move(self, client: redis.Redis, amount: int) -> None:
        name = f"{self._number}.{amount}"
        left, right = (
            json.dumps({"event_id": name, "owner": f"o{amount % 5}", "by": by})
            for by in (-amount, amount)
        )
        while True:
            try:
                transaction = ask(client, "RB.TX.BEGIN")
                fresh = ask(client, "RB.TX.ADD", transaction, "left", left)
                assert fresh == ask(client, "RB.TX.ADD", transaction, "right", right)
                ask(client, "RB.TX.COMMIT", transaction)
            except (*AWAY, redis.ResponseError) as error:
                # A transaction is gone with the node that it was begun with.
                if isinstance(
                    error, redis.ResponseError
                ) and "transaction does not exist" not in str(error):
                    raise
                continue
            return


class Reader:
    """Repeatedly queries both aggregates at one snapshot."""

    def __init__(self, node: OwnStorageNode) -> None:
        self._node = node
        self.looks = 0
        self.wrong: list[tuple[int, int]] = []

    def run(self, may_end: Callable[[], bool]) -> None:
        with self._node.client("crash", token_of("crash"), protocol=3) as client:
            while not may_end():
                try:
                    transaction = ask(client, "RB.TX.BEGIN", "READONLY")
                    sums = [total(client, name, transaction)[0] for name in ("left", "right")]
                    ask(client, "RB.TX.ROLLBACK", transaction)
                except (*AWAY, redis.ResponseError):
                    continue
                self.looks += 1
                if sum(sums):
                    self.wrong.append((sums[0], sums[1]))


def total(client: redis.Redis, name: str, transaction: int | None = None) -> tuple[int, int]:
    """Return the sum and the count of an aggregate."""
    if transaction is None:
        fresh = json.dumps({"group_by": [], "snapshot": "fresh"})
        rows = json.loads(ask(client, "RB.AGG.QUERY", name, fresh))["rows"]
    else:
        rows = json.loads(ask(client, "RB.TX.QUERY", transaction, name, WHOLE))["rows"]
    return (int(rows[0]["sum"]), int(rows[0]["n"])) if rows else (0, 0)


def crash_loop(node: OwnStorageNode, crashes: int) -> None:
    with node.namespace("crash", protocol=3) as client:
        for name in ("left", "right"):
            ask(client, "RB.AGG.DEFINE", name, json.dumps(ACCOUNT))
    writers = [Writer(node, number) for number in range(WRITERS)]
    reader, ends = Reader(node), threading.Event()
    work = [*(writer.run for writer in writers), reader.run]
    threads = [threading.Thread(target=one, args=(ends.is_set,)) for one in work]
    for thread in threads:
        thread.start()

    def moved_count() -> int:
        return sum(len(writer.moved) for writer in writers)

    try:
        for _ in range(crashes):
            before, looks = moved_count(), reader.looks
            wait_until(lambda: moved_count() >= before + 20, what="work between crashes")  # noqa: B023
            wait_until(lambda: reader.looks > looks, what="a look between crashes")  # noqa: B023
            node.kill()
            node.start()
    finally:
        ends.set()
        for thread in threads:
            thread.join()
    moved = [amount for writer in writers for amount in writer.moved]
    assert reader.wrong == [], "no moment shows half a transaction"
    with node.client("crash", token_of("crash"), protocol=3) as client:
        assert total(client, "right") == (sum(moved), len(moved)), "each counts once"
        assert total(client, "left") == (-sum(moved), len(moved))


def test_transactions_are_whole_and_count_once_through_kills(node: OwnStorageNode) -> None:
    crash_loop(node, crashes=2)


@pytest.mark.long
def test_transactions_are_whole_and_count_once_through_many_kills(node: OwnStorageNode) -> None:
    crash_loop(node, crashes=40)


def test_aggregates_survive_an_orderly_stop(node: OwnStorageNode) -> None:
    events = [json.dumps({"owner": "o", "by": by}) for by in (1, 2)]
    with node.namespace("kept", protocol=3) as client:
        generation = ask(client, "RB.AGG.DEFINE", "left", json.dumps(ACCOUNT))
        ask(client, "RB.AGG.ADD", "left", *events)
    assert node.stop() == 0
    node.start()
    with node.namespace("kept", protocol=3) as client:
        assert ask(client, "RB.AGG.DEFINE", "left", json.dumps(ACCOUNT)) == generation
        assert total(client, "left") == (3, 2)
        ask(client, "RB.AGG.ADD", "left", *events)
        assert total(client, "left") == (6, 4)
    with node.namespace("another", protocol=3) as client:
        with pytest.raises(redis.ResponseError, match="the aggregate does not exist"):
            ask(client, "RB.AGG.QUERY", "left", "{}")
        assert ask(client, "RB.AGG.LIST") == []


def test_an_open_snapshot_does_not_change(shared_node: OwnStorageNode) -> None:
    with shared_node.namespace("moments", protocol=3) as client:
        ask(client, "RB.AGG.DEFINE", "left", json.dumps(ACCOUNT))
        ask(client, "RB.KV.SET", "key", "before")
        held = ask(client, "RB.SNAPSHOT.OPEN")
        ask(client, "RB.KV.SET", "key", "after")
        ask(client, "RB.AGG.ADD", "left", json.dumps({"owner": "o", "by": 1}))
        query_text = json.dumps({"group_by": [], "snapshot": held})
        assert json.loads(ask(client, "RB.AGG.QUERY", "left", query_text))["rows"] == []
        assert ask(client, "RB.KV.GET", "key", "AT", held) == "before"
        assert ask(client, "RB.KV.SCAN", "PREFIX", "k", "AT", held) == [["key", "before"]]
        answer = json.loads(
            ask(client, "RB.AGG.QUERY", "left", json.dumps({"group_by": [], "snapshot": "fresh"}))
        )
        assert answer["rows"] == [{"sum": 1, "n": 1}]
        again = json.dumps({"group_by": [], "snapshot": answer["snapshot"]})
        ask(client, "RB.AGG.ADD", "left", json.dumps({"owner": "o", "by": 1}))
        assert json.loads(ask(client, "RB.AGG.QUERY", "left", again)) == answer
        assert ask(client, "RB.SNAPSHOT.CLOSE", held) == 1
        with pytest.raises(redis.ResponseError, match="snapshot"):
            ask(client, "RB.AGG.QUERY", "left", query_text)
