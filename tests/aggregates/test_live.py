"""Rows of aggregates over WebSockets and Server-Sent Events."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests

from foundation.scope import scoped
from tests.aggregates.aggregate_client import AggregateClient, Json, make_aggregate
from tests.aggregates.test_events import request
from tests.caller import problem, with_key
from tests.make import make_key
from tests.realtime.client import Client, greeted

Frame = dict[str, Any]


def key_of(aggregate: AggregateClient) -> str:
    return aggregate.caller.headers["Authorization"].removeprefix("Bearer ")


class HeldRows:
    """The rows that a client maintains from its frames."""

    def __init__(self, next_frame: Callable[[], Frame]) -> None:
        self._next = next_frame
        self.rows: dict[str, Json] = {}
        self.resume = ""
        self.seq = 0
        self.kinds: list[str] = []

    def take(self) -> Frame:
        frame = self._next()
        self.kinds.append(frame["type"])
        if frame["type"] == "result":
            if frame["part"] == 0:
                self.rows = {}
            for item in frame["items"]:
                self.rows[json.dumps(item["id"])] = item["document"]
        elif frame["type"] == "event":
            assert frame["seq"] == self.seq + 1
            self.seq = frame["seq"]
            key = json.dumps(frame["key"])
            if frame["match"] == "remove":
                del self.rows[key]
            else:
                self.rows[key] = frame["document"]
        elif frame["type"] == "reset":
            self.seq = 0
        self.resume = frame.get("resume", self.resume)
        return frame

    def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self.take()

    def ready(self) -> None:
        self.until(lambda: "ready" in self.kinds)

    def counts(self) -> dict[str, int]:
        return {row["customer"]: row["count"] for row in self.rows.values()}


def subscribe(
    client: Client, aggregate: AggregateClient, name: str = "a", **members: object
) -> HeldRows:
    query_members = {"group_by": ["customer"], **members}
    client.send(type="subscribe", id=name, aggregate=aggregate.name, **query_members)
    return HeldRows(lambda: client.wait_for(lambda f: f.get("id") == name))


def test_rows_are_returned_and_then_delivered_as_they_change(
    server: str, requests_5m: AggregateClient
) -> None:
    requests_5m.add(request("acme", 10))
    with greeted(server, key_of(requests_5m)) as client:
        subscription = subscribe(client, requests_5m)
        subscription.ready()
        assert subscription.counts() == {"acme": 1}
        (key,) = subscription.rows
        assert json.loads(key) == {"customer": "acme"}
        requests_5m.add(request("acme", 30), request("bolt", 1))
        subscription.until(lambda: subscription.counts() == {"acme": 2, "bolt": 1})
        for _ in range(20):
            requests_5m.add(request("bolt", 1))
        subscription.until(lambda: subscription.counts() == {"acme": 2, "bolt": 21})
        assert subscription.rows[json.dumps({"customer": "bolt"})]["total"] == 21


def test_a_filter_decides_which_rows_are_delivered(
    server: str, requests_5m: AggregateClient
) -> None:
    with greeted(server, key_of(requests_5m)) as client:
        subscription = subscribe(client, requests_5m, filter={"customer": "acme"})
        subscription.ready()
        requests_5m.add(request("bolt", 1), request("acme", 30))
        subscription.until(lambda: subscription.counts() == {"acme": 1})


def test_rows_leave_the_watched_period_without_new_events(server: str) -> None:
    aggregate = make_aggregate(server, time={"field": "at", "bucket": "1s"})
    aggregate.add(request("acme", 10))
    with greeted(server, key_of(aggregate)) as client:
        subscription = subscribe(client, aggregate, **{"from": "-2s"})
        subscription.ready()
        subscription.until(lambda: not subscription.rows)


def test_a_reconnected_client_has_the_current_answer(
    server: str, requests_5m: AggregateClient
) -> None:
    requests_5m.add(request("acme", 10))
    with greeted(server, key_of(requests_5m)) as client:
        subscription = subscribe(client, requests_5m)
        subscription.ready()
        requests_5m.add(request("bolt", 10))
        subscription.until(lambda: len(subscription.counts()) == 2)
    requests_5m.add(request("acme", 10))
    with greeted(server, key_of(requests_5m)) as client:
        again = subscribe(client, requests_5m, resume=subscription.resume)
        again.rows, again.seq = dict(subscription.rows), subscription.seq
        again.ready()
        requests_5m.add(request("cumulus", 10))
        again.until(lambda: again.counts() == {"acme": 2, "bolt": 1, "cumulus": 1})


def test_a_token_of_another_query_is_refused(server: str, requests_5m: AggregateClient) -> None:
    with greeted(server, key_of(requests_5m)) as client:
        subscription = subscribe(client, requests_5m)
        subscription.ready()
        subscribe(client, requests_5m, "b", group_by=["app"], resume=subscription.resume)
        refusal = client.answer("b")
        assert refusal["error"]["code"] == "invalid_body"
        assert refusal["error"]["errors"][0]["pointer"] == "/resume"


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({"aggregate": "nowhere"}, "not_found"),
        ({"group_by": ["server"]}, "invalid_body"),
        ({"snapshot": "fresh"}, "invalid_body"),
        ({"surprise": 1}, "invalid_body"),
    ],
)
def test_what_cannot_be_watched_is_refused(
    server: str, requests_5m: AggregateClient, members: Json, code: str
) -> None:
    with greeted(server, key_of(requests_5m)) as client:
        client.send(**{"type": "subscribe", "id": "a", "aggregate": requests_5m.name, **members})
        assert client.answer("a")["error"]["code"] == code


def test_a_dropped_aggregate_ends_its_subscriptions(
    server: str, requests_5m: AggregateClient
) -> None:
    requests_5m.add(request())
    with greeted(server, key_of(requests_5m)) as client:
        subscribe(client, requests_5m).ready()
        assert requests_5m.caller.delete(requests_5m.control_path).status_code == 204
        end = client.wait_for(lambda f: f["type"] == "end")
        assert end["error"]["code"] == "not_found"


def test_a_key_without_the_scope_may_not_subscribe(
    server: str, requests_5m: AggregateClient
) -> None:
    with scoped(tenant_id=requests_5m.account.tenant.id):
        key = make_key(requests_5m.account.tenant, scopes=["topics:read"])
    with greeted(server, key) as client:
        client.send(type="subscribe", id="a", aggregate=requests_5m.name)
        assert client.answer("a")["error"]["code"] == "missing_scope"


def test_two_tenants_with_one_name_watch_their_own(
    server: str, requests_5m: AggregateClient
) -> None:
    other = make_aggregate(server)
    with greeted(server, key_of(requests_5m)) as client, greeted(server, key_of(other)) as stranger:
        subscription, theirs = subscribe(client, requests_5m), subscribe(stranger, other)
        subscription.ready()
        theirs.ready()
        other.add(request("theirs"))
        theirs.until(lambda: theirs.counts() == {"theirs": 1})
        requests_5m.add(request("ours"))
        subscription.until(lambda: subscription.counts() == {"ours": 1})


def streamed(answer: requests.Response) -> Iterator[Frame]:
    event: Frame = {}
    for line in answer.iter_lines(chunk_size=1):
        if not line:
            if "data" in event:
                yield {**event["data"], "event_id": event.get("id")}
            event = {}
            continue
        name, _, value = line.decode().partition(": ")
        event[name] = json.loads(value) if name == "data" else value


def test_rows_can_be_subscribed_to_by_server_sent_events(
    server: str, requests_5m: AggregateClient
) -> None:
    requests_5m.add(request("acme", 10))
    address = f"{server}{requests_5m.path}/live"
    query = {"group_by": '["customer"]'}
    with requests.get(
        address, query, headers=requests_5m.caller.headers, stream=True, timeout=60
    ) as answer:
        assert answer.status_code == 200, answer.text
        frames = streamed(answer)
        subscription = HeldRows(lambda: next(frames))
        subscription.ready()
        assert subscription.counts() == {"acme": 1}
        requests_5m.add(request("bolt", 10))
        subscription.until(lambda: subscription.counts() == {"acme": 1, "bolt": 1})
    headers = {**requests_5m.caller.headers, "Last-Event-ID": subscription.resume}
    with requests.get(address, query, headers=headers, stream=True, timeout=60) as answer:
        frames = streamed(answer)
        again = HeldRows(lambda: next(frames))
        again.ready()
    wrong = requests_5m.caller.get(f"{requests_5m.path}/live?group_by=customer")
    problem(wrong, 400, "invalid_parameter")
    nowhere = with_key(server, key_of(requests_5m)).get("/v1/aggregates/nowhere/live")
    problem(nowhere, 404, "not_found")


def test_subscriptions_are_listed(server: str, requests_5m: AggregateClient) -> None:
    with greeted(server, key_of(requests_5m)) as client:
        subscribe(client, requests_5m).ready()
        path = f"/api/v1/tenants/{requests_5m.account.slug}/subscriptions"
        answer = requests_5m.caller.get(path)
        assert answer.status_code == 200, answer.text
