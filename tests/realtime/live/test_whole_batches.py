"""While batches are written and nodes are killed, no subscriber ever sees a part of a batch.

Each batch moves an amount between two documents in two collections, in opposite directions, so that
complete results add up to zero.
"""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from realtime.events.layer import lease_key
from tests.documents.collection import CollectionClient, make_collection
from tests.realtime.live.answer import Answer, subscribe
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.realtime.client import Client
    from tests.realtime.live.conftest import BackgroundProcesses

KEYS = [f"d{number}" for number in range(8)]
HEALED_S = 120.0


class Ledger:
    """Writes batches over two collections, and inserts and deletes documents."""

    def __init__(self, accounts: CollectionClient, mirrors: CollectionClient) -> None:
        self._collections = ((accounts, 1), (mirrors, -1))
        self._rng = random.Random()
        self._amounts: dict[str, int] = {}
        self.batches = 0

    def write_until(self, over: threading.Event) -> None:
        while not over.is_set():
            self._move()

    def _move(self) -> None:
        key, other = self._rng.sample(KEYS, 2)
        before = dict(self._amounts)
        if key in before and self._rng.random() < 0.3:
            amount = -self._amounts.pop(key)
        else:
            amount = self._rng.randrange(1, 1_000)
            self._amounts[key] = before.get(key, 0) + amount
        self._amounts[other] = before.get(other, 0) - amount
        operations = [
            {"collection": collection.name, **self._operation(changed, before, sign)}
            for collection, sign in self._collections
            for changed in (key, other)
        ]
        caller = self._collections[0][0].caller
        answer = caller.post("/v1/transactions", {"operations": operations})
        assert answer.status_code == 200, answer.text
        self.batches += 1

    def _operation(self, key: str, before: dict[str, int], sign: int) -> dict[str, Any]:
        amount = self._amounts.get(key)
        if amount is None:
            return {"delete": {"id": key}}
        if key in before:
            return {"update": {"id": key, "update": {"$set": {"n": sign * amount}}}}
        return {"insert": {"_id": key, "n": sign * amount, "mirror": key}}


def assert_whole(answer: Answer) -> None:
    shown = answer.documents
    if "groups" in answer.name:
        assert [row["sum"] for row in shown] in ([], [0]), answer.frames[-3:]
        return
    assert sum(document["n"] for document in shown) == 0, (shown, answer.frames[-3:])
    if answer.looks_up:
        sums = [document["n"] + document["other"]["n"] for document in shown]
        assert not any(sums), (shown, answer.frames[-3:])


def follow(client: Client, answers: dict[str, Answer], until: Callable[[], bool]) -> None:
    """Read frames, and check each result whenever it is complete."""
    deadline = time.monotonic() + HEALED_S
    while not until():
        assert time.monotonic() < deadline, {name: a.state for name, a in answers.items()}
        try:
            frame = client.next(timeout_s=0.2)
        except TimeoutError:
            continue
        answer = answers[frame["id"]]
        answer.frames.append(frame)
        answer.take(frame)
        # Parts of a result, and of a group, are not shown before the last one is there.
        if frame.get("last") or (frame["type"] == "event" and "resume" in frame):
            assert_whole(answer)


def pid_of(background: BackgroundProcesses, node: str) -> int | None:
    key = lease_key(background.grid.prefix, background.grid.epoch, node)
    report = background.valkey.hget(key, "report")
    pid = json.loads(report or b"{}").get("pid")
    return None if pid is None else int(pid)


def kill_nodes(background: BackgroundProcesses) -> None:
    """Kill one filter node with the sort node, then the other one with the sort node's successor.

    Whoever is killed is waited for.
    """
    *filters, sort = (node.name for node in background.grid.nodes())
    for node in filters:
        replace(background, {name: pid_of(background, name) for name in (node, sort)})


def replace(background: BackgroundProcesses, nodes: dict[str, int | None]) -> None:
    for pid in nodes.values():
        assert pid is not None
        os.kill(pid, signal.SIGKILL)

    def are_replaced() -> bool:
        others = all(pid_of(background, name) != pid for name, pid in nodes.items())
        return others and background.watches()

    wait_until(are_replaced, what="other nodes to run", timeout_s=HEALED_S)


Queries = dict[str, tuple[CollectionClient, dict[str, Any]]]


def queries_over(accounts: CollectionClient, mirrors: CollectionClient) -> Queries:
    lookup = [{"from": mirrors.name, "local": "mirror", "as": "other"}]
    total = {"by": [], "measures": {"sum": {"op": "sum", "field": "n"}}}
    return {
        "accounts": (accounts, {}),
        "mirrors": (mirrors, {}),
        "sorted": (accounts, {"sort": [["n", -1]], "limit": 100}),
        "both": (accounts, {"lookup": lookup}),
        "groups": (accounts, {"group": total}),
    }


def watched(client: Client, queries: Queries) -> dict[str, Answer]:
    """Watch each query by events, and by whole results."""
    answers = {}
    for name, (collection, query) in queries.items():
        members = {"collection": collection.name, **query}
        answers[name] = subscribe(client, name, **members)
        whole = f"{name} as results"
        answers[whole] = subscribe(client, whole, options={"deliver": "result"}, **members)
    return answers


def asked_again(queries: Queries) -> dict[str, list[Any]]:
    expected = {}
    for name, (collection, query) in queries.items():
        response = collection.ask({"limit": 100, **query}).json()
        items = [row["document"] for row in response["rows" if "group" in query else "items"]]
        expected[name] = expected[f"{name} as results"] = items
    return expected


def batches_told(answer: Answer) -> list[int]:
    """Return how many changes of each batch arrived as events."""
    return [event["txn"]["count"] for event in answer.events if "txn" in event]


def test_no_batch_over_partitions_and_collections_is_shown_in_part_while_nodes_are_killed(
    client: Client, todos: CollectionClient, background: BackgroundProcesses
) -> None:
    mirrors = make_collection(todos.caller.base, account=todos.account)
    queries = queries_over(todos, mirrors)
    answers = watched(client, queries)
    ledger, over = Ledger(todos, mirrors), threading.Event()
    with ThreadPoolExecutor() as others:
        writing = others.submit(ledger.write_until, over)
        try:
            killing = others.submit(kill_nodes, background)

            def is_enough() -> bool:
                # While nodes are down, changes arrive as results. At least one batch must arrive as
                # events.
                has_events = bool(batches_told(answers["accounts"]))
                return writing.done() or (killing.done() and has_events)

            follow(client, answers, is_enough)
        finally:
            over.set()
        killing.result()
        writing.result()
    expected = asked_again(queries)

    def are_live() -> bool:
        are_equal = (a.documents == expected[name] for name, a in answers.items())
        return all(are_equal) and all(a.state == "live" for a in answers.values())

    follow(client, answers, are_live)
    assert ledger.batches > 10
    sizes = batches_told(answers["accounts"])
    assert sizes
    assert min(sizes) >= 2
