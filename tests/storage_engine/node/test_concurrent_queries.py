"""Queries run on threads that do not write, which clients notice only by the speed."""

from __future__ import annotations

import json
from typing import Any

import pytest
import redis

from tests.own_storage_node import OwnStorageNode, ask, token_of
from tests.storage_engine.node.listener import Listener
from tests.waiting import wait_until

CALLS = json.dumps({"dimensions": ["owner"], "measures": {"n": {"op": "count"}}, "rollups": [[]]})
EVENT = json.dumps({"owner": "o"})
FRESH = json.dumps({"group_by": [], "snapshot": "fresh"})
SHARED = json.dumps({"group_by": []})


def rows(answer: str) -> Any:
    return json.loads(answer)["rows"]


def test_a_client_that_alternates_writes_and_reads_is_answered_in_order(
    shared_node: OwnStorageNode,
) -> None:
    with shared_node.namespace("turns", protocol=3) as client:
        ask(client, "RB.AGG.DEFINE", "calls", CALLS)
        with client.pipeline(transaction=False) as pipeline:
            for _ in range(50):
                ask(pipeline, "RB.AGG.ADD", "calls", EVENT)
                ask(pipeline, "RB.AGG.QUERY", "calls", FRESH)
                ask(pipeline, "PING")
            answers = pipeline.execute()
    assert answers[0::3] == [[1]] * 50
    assert [rows(answer) for answer in answers[1::3]] == [[{"n": n}] for n in range(1, 51)]
    assert answers[2::3] == [True] * 50


def test_a_connection_gets_pushes_while_its_reads_run_in_other_threads(
    shared_node: OwnStorageNode,
) -> None:
    with shared_node.namespace("pushes", protocol=3) as client:
        ask(client, "RB.AGG.DEFINE", "calls", CALLS)
        ask(client, "RB.TOPIC.CREATE", "news", "KIND", "flat")
        listener = Listener(client)
        listener.ask("RB.SUB", "news", "ID", "a", "FOLLOW")
        for number in range(20):
            listener.ask("RB.AGG.QUERY", "calls", SHARED)
            ask(client, "RB.PUB", "news", "ID", "a", "DATA", json.dumps({"number": number}))
            # It goes back to where it writes, and is pushed there what comes next.
            if number % 2:
                listener.ask("RB.KV.SET", "key", "value")
        shown = listener.publications(20)
        listener.close()
    assert [json.loads(one["data"])["number"] for one in shown] == list(range(20))


def test_a_connection_with_a_running_read_ends_when_killed_or_its_token_is_revoked(
    node: OwnStorageNode,
) -> None:
    with node.namespace("leaving", protocol=3) as client:
        ask(client, "RB.AGG.DEFINE", "calls", CALLS)
        killed, revoked = Listener(client), Listener(client)
        for listener in (killed, revoked):
            listener.ask("RB.AGG.QUERY", "calls", SHARED)
        number = killed.ask("CLIENT", "ID")
        with node.client() as admin:
            ask(admin, "CLIENT", "KILL", "ID", number)
            with pytest.raises(redis.ConnectionError):
                killed.next_push()
            assert revoked.ask("PING") == "PONG"
            ask(admin, "RB.NAMESPACE.ROTATE", "leaving", token_of("another"))
            with pytest.raises(redis.ConnectionError):
                revoked.next_push()
            others = ask(admin, "CLIENT", "LIST").splitlines()
    assert not [line for line in others if f"id={number} " in line]


def test_watches_of_clients_that_hang_up_are_removed(
    node: OwnStorageNode,
) -> None:
    with node.namespace("hanging", protocol=3) as client:
        ask(client, "RB.AGG.DEFINE", "calls", CALLS)
        before = node.metric("rillbase_node_clients")
        listeners = [Listener(client) for _ in range(5)]
        for listener in listeners:
            listener.ask("RB.AGG.WATCH", "calls", SHARED)
            listener.close()
        gone = "those who hung up to be forgotten"
        wait_until(lambda: node.metric("rillbase_node_clients") <= before, what=gone)
        wait_until(lambda: node.metric("rillbase_node_watches") == 0, what=gone)


def test_the_same_question_is_answered_the_same_within_a_second_and_anew_after_it(
    node: OwnStorageNode,
) -> None:
    with node.namespace("repeated", protocol=3) as client, node.namespace("other") as other:
        for one in (client, other):
            ask(one, "RB.AGG.DEFINE", "calls", CALLS)
        ask(client, "RB.AGG.ADD", "calls", EVENT)
        first = json.loads(ask(client, "RB.AGG.QUERY", "calls", SHARED))
        ask(client, "RB.AGG.ADD", "calls", EVENT)
        # Another tenant's aggregate of that name, asked the same, is another.
        assert rows(ask(other, "RB.AGG.QUERY", "calls", SHARED)) == []

        def has_changed() -> bool:
            answer = json.loads(ask(client, "RB.AGG.QUERY", "calls", SHARED))
            if answer["snapshot"] == first["snapshot"]:
                assert answer == first
            return bool(answer["rows"] == [{"n": 2}])

        wait_until(has_changed, what="another moment")

        def has_repeated() -> bool:
            has_changed()
            return node.metric("rillbase_node_repeated_queries_total") > 0

        wait_until(has_repeated, what="two questions within a second")


def test_the_newest_snapshots_of_a_tenant_give_way_to_newer_ones(
    shared_node: OwnStorageNode,
) -> None:
    with shared_node.namespace("newest", protocol=3) as client:
        ask(client, "RB.AGG.DEFINE", "calls", CALLS)
        with client.pipeline(transaction=False) as pipeline:
            for _ in range(252):
                ask(pipeline, "RB.AGG.ADD", "calls", EVENT)
                ask(pipeline, "RB.AGG.QUERY", "calls", FRESH)
            answers = [json.loads(answer) for answer in pipeline.execute()[1::2]]

        def from_snapshot(answer: Any) -> Any:
            query_text = json.dumps({"group_by": [], "snapshot": answer["snapshot"]})
            return rows(ask(client, "RB.AGG.QUERY", "calls", query_text))

        assert [from_snapshot(answer) for answer in answers[2:]] == [
            [{"n": n}] for n in range(3, 253)
        ]
        for answer in answers[:2]:
            with pytest.raises(redis.ResponseError, match="the snapshot does not exist"):
                from_snapshot(answer)
