"""Whatever is written and however often the network fails, a live query shows the same as a
one-time query.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from tests.sdk.driver import Program, shows
from tests.sdk.proxy import Proxy

if TYPE_CHECKING:
    from tests.documents.collection import CollectionClient

pytestmark = pytest.mark.timeout(300)

QUERIES: dict[str, dict[str, Any]] = {
    "plain": {"filter": {"n": {"$lt": 6}}},
    "window": {"sort": [["n", -1]], "limit": 4},
    "ordered": {"filter": {"n": {"$gte": 3}}, "sort": [["n", 1]]},
}
WRITES = 60
IDS = [1, 2.5, "a", "ab", "B", "é", "\U0001f600", True]


def write_something(todos: CollectionClient, rng: random.Random) -> None:
    """Make one write, or an atomic batch of several."""
    operations = [operation(rng) for _ in range(rng.choice([1, 1, 1, 3]))]
    body = {"operations": operations, "ordered": len(operations) > 1}
    answer = todos.caller.post(f"{todos.path}/documents:bulk", body)
    assert answer.status_code in (200, 404), answer.text


def operation(rng: random.Random) -> dict[str, Any]:
    identity, n = rng.choice(IDS), rng.randrange(10)
    return rng.choice(
        [
            {"replace": {"id": identity, "document": {"n": n}}},
            {"update": {"id": identity, "update": {"$set": {"n": n}}, "upsert": True}},
            {"delete": {"id": identity}},
        ]
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_a_live_answer_equals_a_query(
    client: Program, todos: CollectionClient, network: Proxy, seed: int
) -> None:
    rng = random.Random(seed)
    for name, query in QUERIES.items():
        client.send("watch", name, collection=todos.name, **query)
    for _ in range(WRITES):
        write_something(todos, rng)
        if rng.random() < 0.1:
            rng.choice([network.cut, network.half_close])()
    for name, query in QUERIES.items():
        shows(client, name, todos.query(**query))
