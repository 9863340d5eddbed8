"""Writes of several kinds that come together become durable by one sync, each for itself."""

from __future__ import annotations

import json
from typing import Any

import pytest
import redis

from tests.own_storage_node import OwnStorageNode, ask, token_of

SYNCS = "rillbase_node_engine_log_syncs_total"
DEFINITION = {
    "dimensions": ["owner"],
    "measures": {"sum": {"op": "sum", "field": "by", "type": "int"}},
    "rollups": [[]],
}
WHOLE = json.dumps({"group_by": [], "snapshot": "fresh"})
EVENT = json.dumps({"owner": "a", "by": 1})


@pytest.fixture
def client(node: OwnStorageNode) -> redis.Redis:
    client = node.namespace("groups", protocol=3)
    ask(client, "RB.TOPIC.CREATE", "news")
    ask(client, "RB.AGG.DEFINE", "sums", json.dumps(DEFINITION))
    return client


def together(client: redis.Redis, *commands: tuple[object, ...]) -> list[Any]:
    """Send commands at once, so that the node reads them at once."""
    pipeline = client.pipeline(transaction=False)
    for words in commands:
        ask(pipeline, *words)
    return pipeline.execute(raise_on_error=False)


def total(client: redis.Redis) -> int:
    """Return the sum of all events."""
    rows = json.loads(ask(client, "RB.AGG.QUERY", "sums", WHOLE))["rows"]
    return int(rows[0]["sum"])


def begin(client: redis.Redis, key: str) -> int:
    """Begin a transaction that adds an event and sets a key."""
    transaction = int(ask(client, "RB.TX.BEGIN"))
    ask(client, "RB.TX.ADD", transaction, "sums", EVENT)
    ask(client, "RB.TX.SET", transaction, key, "of the transaction")
    return transaction


def test_writes_of_all_kinds_take_one_sync_and_survive_a_kill(
    node: OwnStorageNode, client: redis.Redis
) -> None:
    sid = ask(client, "RB.SUB", "news", "ID", "1")["subscription"]
    position = ask(client, "RB.PUB", "news", "ID", "1")["position"]
    transaction = begin(client, "other")
    syncs = node.metric(SYNCS)

    published, *others = together(
        client,
        ("RB.PUB", "news", "ID", "1", "NAME", "kept"),
        ("RB.AGG.ADD", "sums", EVENT),
        ("RB.KV.SET", "key", "value"),
        ("RB.SUB.ACK", sid, position),
        ("RB.TX.COMMIT", transaction),
    )

    assert node.metric(SYNCS) - syncs == 1
    assert published["matched"] == 1
    assert others == [[1], "OK", 1, "OK"]
    node.kill()
    node.start()
    with node.client("groups", token_of("groups"), protocol=3) as back:
        names = [one["name"] for one in ask(back, "RB.DATA", "news", "ID", "1")]
        assert "kept" in names
        assert total(back) == 2
        assert ask(back, "RB.KV.MGET", "key", "other") == ["value", "of the transaction"]
        assert ask(back, "RB.SUB.ACK", sid, position) == 0


def test_a_write_that_fails_fails_none_of_those_beside_it(client: redis.Redis) -> None:
    late = begin(client, "key")

    stored, conflict, added, published = together(
        client,
        ("RB.KV.SET", "key", "value"),
        ("RB.TX.COMMIT", late),
        ("RB.AGG.ADD", "sums", EVENT),
        ("RB.PUB", "news", "ID", "1"),
    )

    assert (stored, added, published["matched"]) == ("OK", [1], 0)
    assert str(conflict).startswith("CONFLICT")
    assert total(client) == 1
    assert ask(client, "RB.KV.GET", "key") == "value"


def test_of_an_event_and_a_transaction_that_repeats_it_one_is_counted(client: redis.Redis) -> None:
    event = json.dumps({"owner": "a", "by": 1, "event_id": "once"})
    transaction = int(ask(client, "RB.TX.BEGIN"))
    ask(client, "RB.TX.ADD", transaction, "sums", event)

    conflict, added = together(client, ("RB.TX.COMMIT", transaction), ("RB.AGG.ADD", "sums", event))

    assert added == [1]
    assert "CONFLICT" in str(conflict).upper()
    assert total(client) == 1
