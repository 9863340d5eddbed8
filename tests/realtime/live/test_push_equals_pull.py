"""Whatever is written, the first result and its events, applied in order, equal a new query's
result.
"""

from __future__ import annotations

import random
import threading
from typing import Any

from tests.documents.collection import CollectionClient
from tests.realtime.client import Client
from tests.realtime.live.answer import Answer, begin

QUERIES: list[dict[str, Any]] = [
    {},
    {"filter": {"n": {"$lt": 5}}},
    {"filter": {"tags": "b", "n": {"$gte": 3}}},
    {"filter": {"$or": [{"text": {"$regex": "^a"}}, {"n": {"$in": [1, 7]}}]}},
    {"filter": {"nested.x": {"$exists": True}}, "sort": [["nested.x", -1]], "limit": 5},
    {"sort": [["n", 1]], "limit": 4},
    {"sort": [["n", -1], ["text", 1]], "offset": 2, "limit": 3},
    {"filter": {"n": {"$ne": 4}}, "sort": [["text", 1]], "offset": 1, "limit": 6},
    {"sort": [["$updated", -1]], "limit": 4},
    {"filter": {"n": {"$gte": 2}}, "sort": [["$updated", 1]], "offset": 1, "limit": 5},
    {"sort": [["text", 1], ["$created", -1]]},
    # Arrays side by side.
    {"sort": [["tags", 1], ["ranks", -1]], "limit": 5},
    {"filter": {"n": {"$gte": 1}}, "sort": [["ranks", -1], ["others.id", 1], ["tags", 1]]},
    # Some documents cannot be evaluated: a division by zero, and too long a list.
    {"filter": {"$expr": {"$gte": [{"$divide": [10, "$n"]}, 2]}}},
    {"filter": {"$expr": {"$lt": [{"$size": {"$range": [0, "$size"]}}, 10]}}, "sort": [["n", 1]]},
    {
        "filter": {"$expr": {"$ne": [{"$mod": [7, "$n"]}, 0]}, "text": {"$regex": "^a"}},
        "sort": [["ranks", 1]],
        "limit": 4,
    },
]
_MEASURES = {
    "count": {"op": "count"},
    "sum": {"op": "sum", "field": "n"},
    "mean": {"op": "avg", "field": "n"},
    "least": {"op": "min", "field": "text"},
    "most": {"op": "max", "field": "nested.x"},
}
QUERIES += [
    {"group": {"by": ["text"], "measures": _MEASURES}},
    {"group": {"by": [], "measures": _MEASURES}, "filter": {"n": {"$gte": 5}}},
    {"group": {"by": ["wide"], "measures": _MEASURES}},
    {
        "group": {"by": ["tags", "nested.x"], "measures": _MEASURES},
        "sort": [["count", -1], ["sum", 1]],
        "offset": 1,
        "limit": 3,
    },
]
LOOKUPS: list[dict[str, Any]] = [
    {},
    {"sort": [["n", 1]], "offset": 1, "limit": 4},
    {"sort": [["$updated", -1]], "limit": 5},
    {"filter": {"text": {"$regex": "^a"}}},
]
WRITERS, WRITES = 3, 60
SETTLED_S = 30.0


def write(todos: CollectionClient, seed: int) -> None:
    """Write at random, as one of several clients."""
    rng = random.Random(seed)
    for _ in range(WRITES):
        path = f"{todos.path}/documents/d{rng.randrange(15)}"
        match rng.randrange(5):
            case 0:
                todos.caller.delete(path)
            case 1:
                todos.caller.patch(path, {"$set": {"n": rng.randrange(10)}})
            case 2:
                operations = [
                    {"replace": {"id": f"d{rng.randrange(15)}", "document": document(rng)}}
                    for _ in range(4)
                ]
                todos.caller.post(f"{todos.path}/documents:bulk", {"operations": operations})
            case _:
                todos.caller.put(path, document(rng))


def document(rng: random.Random) -> dict[str, Any]:
    content: dict[str, Any] = {
        "n": rng.randrange(10),
        "text": rng.choice(["a", "ab", "b", "ba"]),
        "tags": rng.sample(["a", "b", "c"], rng.randrange(3)),
        "other": f"d{rng.randrange(20)}",
        "others": [{"id": f"d{rng.randrange(20)}"} for _ in range(rng.randrange(3))],
        "ranks": [rng.randrange(5) for _ in range(rng.randrange(4))],
        "size": rng.choice([3, 30, 100_000_000]),
        #: Larger than what can be grouped by.
        "wide": rng.choice(["narrow", "w" * 2_000]),
    }
    if rng.random() < 0.1:
        # More than one lookup may refer to.
        content["others"] = [{"id": f"d{number}"} for number in range(1_001)]
    if rng.random() < 0.5:
        content["nested"] = {"x": rng.randrange(5)}
    return content


def test_pushed_answers_equal_pulled_ones(client: Client, todos: CollectionClient) -> None:
    seed = random.randrange(2**32)
    writers = [
        threading.Thread(target=write, args=(todos, seed + number)) for number in range(WRITERS)
    ]
    for writer in writers:
        writer.start()
    lookup = [
        {"from": todos.name, "local": "other", "as": "one"},
        {"from": todos.name, "local": "others.id", "as": "all"},
    ]
    queries = [*QUERIES, *({**query, "lookup": lookup} for query in LOOKUPS)]
    # Half of the subscriptions start in the middle of the writes.
    answers = [begin(client, str(n), collection=todos.name, **q) for n, q in enumerate(queries)]
    for writer in writers:
        writer.join()
    answers += [begin(client, f"x{n}", collection=todos.name, **q) for n, q in enumerate(queries)]
    for answer, live_query in zip(answers, queries * 2, strict=True):
        settle(answer, todos, live_query, seed)


def settle(answer: Answer, todos: CollectionClient, live_query: dict[str, Any], seed: int) -> None:
    response = todos.ask({"limit": 10_000, **live_query}).json()
    expected = [row["document"] for row in response["rows" if "group" in live_query else "items"]]
    while not answer.ready:
        answer.next(SETTLED_S)
    try:
        answer.until_shows(expected, timeout_s=SETTLED_S)
    except TimeoutError:
        assert answer.documents == expected, f"{live_query} with the seed {seed}"
