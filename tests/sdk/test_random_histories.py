"""Whatever is written and however often the network fails, what is shown is what asking answers."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from tests.sdk.driver import Program, shows
from tests.sdk.proxy import Proxy

if TYPE_CHECKING:
    from tests.documents.collection import MadeCollection

pytestmark = pytest.mark.timeout(300)

QUERIES: dict[str, dict[str, Any]] = {
    "plain": {"filter": {"n": {"$lt": 6}}},
    "window": {"sort": [["n", -1]], "limit": 4},
    "ordered": {"filter": {"n": {"$gte": 3}}, "sort": [["n", 1]]},
}
WRITES = 60
IDS = [1, 2.5, "a", "ab", "B", "é", "\U0001f600", True]


def write_something(todos: MadeCollection, chance: random.Random) -> None:
    """Do one write, or a batch of some that count as one."""
    operations = [operation(chance) for _ in range(chance.choice([1, 1, 1, 3]))]
    body = {"operations": operations, "ordered": len(operations) > 1}
    answer = todos.caller.post(f"{todos.path}/documents:bulk", body)
    assert answer.status_code in (200, 404), answer.text


def operation(chance: random.Random) -> dict[str, Any]:
    identity, n = chance.choice(IDS), chance.randrange(10)
    return chance.choice(
        [
            {"replace": {"id": identity, "document": {"n": n}}},
            {"update": {"id": identity, "update": {"$set": {"n": n}}, "upsert": True}},
            {"delete": {"id": identity}},
        ]
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_a_live_answer_equals_a_query(
    client: Program, todos: MadeCollection, network: Proxy, seed: int
) -> None:
    chance = random.Random(seed)
    for name, query in QUERIES.items():
        client.say("watch", name, collection=todos.name, **query)
    for _ in range(WRITES):
        write_something(todos, chance)
        if chance.random() < 0.1:
            chance.choice([network.cut, network.half_close])()
    for name, query in QUERIES.items():
        shows(client, name, todos.query(**query))
