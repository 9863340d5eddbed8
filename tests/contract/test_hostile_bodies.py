"""No body, parameter or header makes the server fail: every mistake results in a 4xx that names
it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from foundation.errors import CATALOGUE
from tenants.roles import DATA_SCOPES as SCOPES
from tests.contract.contract_resources import (
    NDJSON,
    ContractResources,
    contract_resources,
    declared,
)
from tests.contract.hostile import ECHOED, mutated

#: The number of mutations per call in the everyday suite.
SAMPLE, SEED = 40, 20261123
_DOCUMENTS, _TOPIC = "/v1/collections/{collection}", "/v1/topics/{topic}"
_AGGREGATE, _DATASET = "/v1/aggregates/{aggregate}", "/v1/datasets/{dataset}"
_QUERY = {
    "filter": {"n": {"$gt": 1}, "$or": [{"a": "x"}, {"d": {"$in": [1, 2]}}]},
    "sort": [["n", 1]],
    "projection": {"n": 1},
    "offset": 0,
    "limit": 5,
    "cursor": None,
    "lookup": [{"from": "things", "local": "x", "as": "y"}],
}
_GROUPED = {
    "filter": {},
    "sort": [["n", 1]],
    "group": {"by": ["n"], "measures": {"k": {"op": "sum", "field": "n"}}},
}
_UPDATE = {"$set": {"xs.$[e]": 1}, "$inc": {"n": 1}, "$currentDate": {"t": True}}
_FILTERS = [{"e": {"$gt": 1}}]
_GEO = {"center": [16.3, 48.2], "radius_m": 500}

#: Bodies that each call accepts, or nearly so.
BODIES: dict[str, list[Any]] = {
    f"POST {_DOCUMENTS}/documents": [{"n": 1, "d": {"$date": "2026-01-01T00:00:00Z"}, "xs": [1]}],
    f"PUT {_DOCUMENTS}/documents/{{id}}": [{"n": 1, "d": {"x": [1]}}],
    f"PATCH {_DOCUMENTS}/documents/{{id}}": [
        _UPDATE,
        {"$push": {"xs": {"$each": [1], "$slice": 5}}},
    ],
    f"POST {_DOCUMENTS}/documents:get": [{"ids": ["a", {"$oid": "6740a1b2c3d4e5f601234567"}]}],
    f"POST {_DOCUMENTS}/documents:bulk": [
        {
            "operations": [
                {"insert": {"n": 1}},
                {"replace": {"id": "b", "document": {}}},
                {"update": {"id": "a", "update": _UPDATE, "array_filters": _FILTERS}},
                {"delete": {"id": "b"}, "if_version": 1},
            ],
            "ordered": False,
        }
    ],
    f"POST {_DOCUMENTS}/documents:update": [
        {"filter": {"_id": "-"}, "update": _UPDATE, "array_filters": _FILTERS, "limit": 1}
    ],
    f"POST {_DOCUMENTS}/documents:delete": [{"filter": {"_id": "-"}, "limit": 1}],
    f"POST {_DOCUMENTS}/query": [_QUERY, _GROUPED],
    f"POST {_DOCUMENTS}/count": [{"filter": _QUERY["filter"]}],
    f"POST {_DOCUMENTS}/explain": [_QUERY, _GROUPED],
    f"POST {_DOCUMENTS}/import": [{"_id": "line", "n": 1}],
    f"POST {_DOCUMENTS}/import:preview": [{"_id": "line", "n": 1}],
    "POST /v1/transactions": [
        {"operations": [{"collection": "things", "insert": {"n": 1}, "if_version": 1}]}
    ],
    "POST /v1/realtime/tickets": [
        {"origin": "https://app.example", "live": {"collection": "things", **_QUERY}},
        {"live": {"topic": "news", "subscription_id": "x.1", "after": 1}},
    ],
    f"POST {_TOPIC}/publications": [
        {
            "id": "1.2",
            "data": {"n": 1},
            "publication_id": "p",
            "at": "-10s",
            "expires_in_s": 5,
            "self_join": True,
        },
        {"geo": _GEO, "expires_at": "+1h"},
    ],
    f"POST {_TOPIC}/subscriptions": [
        {
            "id": "1.2",
            "from": "-10s",
            "to": "+10s",
            "subscriber": "s",
            "filter": {"n": 1},
            "unseen_only": True,
            "self_join": True,
            "webhook": "w",
        },
        {"geo": {"box": [1, 2, 3, 4]}},
    ],
    f"POST {_AGGREGATE}/events": [
        {"event_id": "e", "customer": "c", "app": "a", "endpoint": "/", "latency_ms": 5, "at": 1},
        [{"customer": "c", "latency_ms": 5, "at": "2026-01-01T00:00:00Z"}],
    ],
    f"POST {_AGGREGATE}/query": [
        {
            "rollup": ["customer"],
            "filter": {"customer": "c"},
            "from": "-1h",
            "to": "+1h",
            "group_by": ["customer"],
            "bucket": "5m",
            "order": [["count", -1]],
            "limit": 5,
            "measures": ["count"],
            "compare": {"shift": "1h"},
            "snapshot": "fresh",
        }
    ],
    f"POST {_DATASET}/query": [
        {
            "table": "orders",
            "columns": ["id", "amount"],
            "filter": {
                "id": {"$gt": 1},
                "at": {"$lt": "2026-01-01T00:00:00Z"},
                "day": "2026-01-01",
            },
            "order": [["id", 1]],
            "limit": 5,
            "freshness": "live",
        },
        {
            "table": "orders",
            "group_by": ["customer"],
            "aggregates": {"sum": {"op": "sum", "column": "amount"}},
            "having": {"sum": {"$gt": 1}},
            "state": 1,
        },
    ],
    f"POST {_DATASET}/sql": [
        {
            "sql": "SELECT count(*) AS n FROM orders WHERE id > $1",
            "parameters": [1],
            "limit": 5,
            "timeout": 10,
            "format": "csv",
            "freshness": "any",
        },
        {"sql": "SELECT $a AS a", "parameters": {"a": {"$numberLong": "1"}}, "state": 0},
    ],
    f"POST {_DATASET}/uploads": [
        {
            "orders": {
                "id": 1,
                "customer": "c",
                "amount": 1.5,
                "count": 1,
                "paid": True,
                "day": "2026-01-01",
                "at": "2026-01-01T00:00:00Z",
            }
        }
    ],
    f"POST {_DATASET}/uploads:preview": [{"id": 1, "customer": "c", "amount": 1.5}],
    f"POST {_DATASET}/uploads/{{upload}}:append": [{"orders": {"id": 1}}],
    f"POST {_DATASET}/uploads/{{upload}}:commit": [],
    f"POST {_DATASET}/uploads/{{upload}}:abort": [],
}
LINES = (
    f"POST {_DOCUMENTS}/import",
    f"POST {_DOCUMENTS}/import:preview",
    f"POST {_DATASET}/uploads",
    f"POST {_DATASET}/uploads:preview",
    f"POST {_DATASET}/uploads/{{upload}}:append",
)
ENDLESS = "text/event-stream"


@pytest.fixture(scope="module")
def resources(server: str) -> ContractResources:
    return contract_resources(server)


def refused_well(answer: requests.Response) -> str:
    """Return what is wrong with a response, or nothing if it succeeded or explains its error
    properly.
    """
    if answer.headers.get("Content-Type") == ENDLESS:
        answer.close()
        return ""
    text = answer.text
    if answer.status_code >= 500:
        return f"{answer.status_code}: {text[:300]}"
    if answer.status_code < 400:
        return ""
    if answer.headers.get("Content-Type") != "application/problem+json":
        return f"{answer.status_code} is no problem document: {text[:300]}"
    if answer.json()["code"] not in CATALOGUE:
        return f"an unknown code: {text[:300]}"
    return "the answer repeats what was sent" if ECHOED in text else ""


def test_every_call_with_a_body_has_one_here() -> None:
    with_bodies = {name for name in declared() if not name.startswith(("GET", "DELETE"))}
    assert with_bodies == BODIES.keys()


def sent(name: str) -> list[tuple[str, str]]:
    return [body_sent for body in BODIES[name] for body_sent in mutated(body)]


@pytest.mark.parametrize("name", BODIES)
def test_a_value_no_member_expects_is_refused(resources: ContractResources, name: str) -> None:
    mutations = sent(name)
    picked = random.Random(SEED).sample(mutations, min(SAMPLE, len(mutations)))
    failed = list(failures(resources, name, picked))
    assert not failed, "\n".join(failed)


@pytest.mark.long
@pytest.mark.parametrize("name", BODIES)
def test_no_value_at_any_position_makes_the_server_fail(
    resources: ContractResources, name: str
) -> None:
    failed = list(failures(resources, name, sent(name)))
    assert not failed, "\n".join(failed)


def failures(
    resources: ContractResources, name: str, mutations: list[tuple[str, str]]
) -> Iterator[str]:
    operation, admin = declared()[name], resources.key(*SCOPES)
    media_type = NDJSON if name in LINES else "application/json"
    with requests.Session() as session:
        session.headers.update({**admin.headers, "Content-Type": media_type})
        for what, text in mutations:
            answer = session.request(
                operation.method, resources.base + resources.path(operation), data=text.encode()
            )
            wrong = refused_well(answer)
            if wrong:
                yield f"{what}: {wrong}"
