"""Every call that OpenAPI describes with an `Idempotency-Key` takes effect once, in sequence and at
the same time.

The calls come from their declarations: one that this table does not know fails the tests.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest
import requests

from tests.aggregates.aggregate_client import AggregateClient, make_aggregate
from tests.analytics.dataset_client import DatasetClient, make_dataset
from tests.caller import problem
from tests.contract.contract_resources import NDJSON, declared
from tests.contract.test_openapi import operations
from tests.documents.collection import CollectionClient, make_collection
from tests.make import TenantAccount, make_tenant
from tests.storage_engine.topics.topic_client import Topic, make_topic

_DOCUMENTS, _TOPIC = "/v1/collections/{collection}", "/v1/topics/{topic}"
_AGGREGATE, _DATASET = "/v1/aggregates/{aggregate}", "/v1/datasets/{dataset}"
NOW_MS = int(time.time() * 1000)
_INCREMENT = {"$inc": {"n": 1}}
_EVENT = {"customer": "c", "app": "a", "endpoint": "/", "latency_ms": 5, "at": NOW_MS}
_ORDER = {"orders": {"id": 7, "count": 1}}


@dataclass(frozen=True)
class RepeatedCall:
    """A call, a different one with the same path, and how it is encoded."""

    body: Any = None
    other: Any = None
    media_type: str = "application/json"
    query: dict[str, str] = field(default_factory=dict)

    def send(self, body: Any, method: str, url: str, headers: dict[str, str]) -> requests.Response:
        content = None if body is None else json.dumps(body)
        types = {} if body is None else {"Content-Type": self.media_type}
        return requests.request(
            method, url, params=self.query, data=content, headers={**headers, **types}, timeout=60
        )


#: A call of each kind that changes something. Those without `other` have no body to differ in.
CALLS: dict[str, RepeatedCall] = {
    f"POST {_DOCUMENTS}/documents": RepeatedCall({"n": 1}, {"n": 2}),
    f"PUT {_DOCUMENTS}/documents/{{id}}": RepeatedCall({"n": 1}, {"n": 2}),
    f"PATCH {_DOCUMENTS}/documents/{{id}}": RepeatedCall(_INCREMENT, {"$inc": {"n": 2}}),
    f"DELETE {_DOCUMENTS}/documents/{{id}}": RepeatedCall(),
    f"POST {_DOCUMENTS}/documents:bulk": RepeatedCall(
        {"operations": [{"insert": {"n": 1}}, {"update": {"id": "a", "update": _INCREMENT}}]},
        {"operations": [{"insert": {"n": 2}}]},
    ),
    f"POST {_DOCUMENTS}/documents:update": RepeatedCall(
        {"filter": {}, "update": _INCREMENT}, {"filter": {}, "update": {"$inc": {"n": 2}}}
    ),
    f"POST {_DOCUMENTS}/documents:delete": RepeatedCall(
        {"filter": {}, "limit": 1}, {"filter": {}, "limit": 2}
    ),
    f"POST {_DOCUMENTS}/import": RepeatedCall({"n": 1}, {"n": 2}, NDJSON),
    "POST /v1/transactions": RepeatedCall(
        {"operations": [{"collection": "things", "insert": {"n": 1}}]},
        {"operations": [{"collection": "things", "insert": {"n": 2}}]},
    ),
    # The key names the publication: with another body, it is still the same publication.
    f"POST {_TOPIC}/publications": RepeatedCall({"id": "1"}),
    f"POST {_TOPIC}/subscriptions": RepeatedCall({"id": "1"}, {"id": "2"}),
    f"DELETE {_TOPIC}/subscriptions/{{subscription}}": RepeatedCall(),
    f"POST {_AGGREGATE}/events": RepeatedCall(_EVENT, {**_EVENT, "latency_ms": 6}),
    f"POST {_DATASET}/uploads": RepeatedCall(_ORDER, {"orders": {"id": 8}}, NDJSON),
    f"POST {_DATASET}/uploads/{{upload}}:append": RepeatedCall(
        _ORDER, {"orders": {"id": 8}}, NDJSON
    ),
    f"POST {_DATASET}/uploads/{{upload}}:commit": RepeatedCall(),
    f"POST {_DATASET}/uploads/{{upload}}:abort": RepeatedCall(),
}


class Resources:
    """What the calls of a new tenant change."""

    def __init__(self, base: str) -> None:
        self.account: TenantAccount = make_tenant(plan="dedicated")
        self.collection: CollectionClient = make_collection(
            base, account=self.account, name="things"
        )
        self.collection.insert_many([{"_id": name, "n": 0} for name in "abc"])
        self.topic: Topic = make_topic(base, account=self.account)
        self.aggregate: AggregateClient = make_aggregate(base, account=self.account)
        self.shop: DatasetClient = make_dataset(base, account=self.account)
        self.shop.send("uploads", b"", NDJSON, open="true", id="open")
        self.names = {
            "collection": self.collection.name,
            "id": "a",
            "topic": self.topic.name,
            "subscription": self.topic.subscribe(id="1")["subscription_id"],
            "aggregate": self.aggregate.name,
            "dataset": self.shop.name,
            "upload": "open",
        }

    def state(self) -> list[Any]:
        """Return all that the calls may change."""
        publications = self.topic.caller.get(f"{self.topic.path}/publications?id=1").json()
        return [
            self.collection.caller.post(f"{self.collection.path}/query", {"limit": 100}).json()[
                "items"
            ],
            publications["items"],
            self.aggregate.rows(rollup=["customer"]),
            self.shop.caller.get(f"{self.shop.path}/uploads/open").json(),
            self.shop.query("orders"),
        ]

    def sender(self, name: str) -> Callable[[Any], requests.Response]:
        """Return what makes a call with a key, and a body."""
        method, path = name.split(" ")
        url = self.collection.caller.base + path.format(**self.names)
        key = {"Authorization": f"Bearer {self.account.admin_key}", "Idempotency-Key": "k"}
        return lambda body: CALLS[name].send(body, method, url, key)


def test_openapi_describes_the_key_of_every_call_that_changes_something() -> None:
    described = {
        f"{method.upper()} {path}"
        for path, method, operation in operations()
        if path.startswith("/v1/")
        and any("IdempotencyKey" in str(one) for one in operation.get("parameters", []))
    }
    assert described == CALLS.keys()
    changing = {
        name
        for name, operation in declared().items()
        if operation.method != "GET" and not operation.is_read
    }
    assert described == changing - {"POST /v1/realtime/tickets"}


@pytest.mark.parametrize("name", CALLS)
def test_a_repeated_call_changes_nothing_more(server: str, name: str) -> None:
    resources = Resources(server)
    send, call = resources.sender(name), CALLS[name]
    first = send(call.body)
    assert first.status_code in (200, 201, 204), first.text
    state = resources.state()
    again = send(call.body)
    assert (again.status_code in (first.status_code, 200), again.text) == (True, again.text)
    assert resources.state() == state
    if call.other is not None:
        problem(send(call.other), 422, "idempotency_mismatch")
        assert resources.state() == state


@pytest.mark.parametrize("name", CALLS)
def test_concurrent_calls_take_effect_once(server: str, name: str) -> None:
    single, resources = Resources(server), Resources(server)
    single.sender(name)(CALLS[name].body)
    send = resources.sender(name)
    with ThreadPoolExecutor(8) as callers:
        answers = list(callers.map(lambda _: send(CALLS[name].body), range(12)))
    statuses = {answer.status_code for answer in answers}
    # A subscription that another call has just ended does not exist.
    assert statuses <= {200, 201, 204, 404 if "subscription}" in name else 409, 409}
    assert statuses & {200, 201, 204}
    assert counted(resources.state()) == counted(single.state())


def counted(state: list[Any]) -> list[Any]:
    """Return what two tenants have in common after the same calls."""
    documents, publications, rows, upload, orders = state
    values = sorted(item["document"]["n"] for item in documents)
    return [values, len(publications), rows, upload["rows"], orders["rows"]]
