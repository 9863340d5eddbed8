"""Topics over WebSockets and Server-Sent Events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import requests

from foundation.scope import scoped
from tenants.models import ApiKey
from tests.caller import problem, with_key
from tests.make import make_key
from tests.realtime.client import Client, greeted
from tests.storage_engine.topics.topic_client import Topic, make_topic, names
from tests.waiting import wait_until

Frame = dict[str, Any]


def key_of(topic: Topic) -> str:
    return topic.caller.headers["Authorization"].removeprefix("Bearer ")


def events(client: Client, name: str, count: int) -> list[Frame]:
    return [
        client.wait_for(lambda f: f["type"] == "event" and f["id"] == name) for _ in range(count)
    ]


def subscribe(client: Client, topic: Topic, name: str = "t", **members: object) -> None:
    members_sent = {"topic_id": "1", "from": "-1h", "to": "+1h", **members}
    client.send(type="subscribe", id=name, topic=topic.name, **members_sent)


def ready(client: Client, name: str = "t") -> Frame:
    return client.wait_for(lambda f: f["type"] == "ready" and f["id"] == name)


@contextmanager
def streamed(topic: Topic, subscription: str, **headers: str) -> Iterator[Iterator[Frame]]:
    """Follow a subscription by events; yield them as they arrive, each with its id."""
    with requests.get(
        f"{topic.caller.base}{topic.path}/subscriptions/{subscription}/live",
        headers={**topic.caller.headers, **headers},
        stream=True,
        timeout=60,
    ) as answer:
        assert answer.status_code == 200, answer.text
        yield _events(answer)


def _events(answer: requests.Response) -> Iterator[Frame]:
    event: Frame = {}
    for line in answer.iter_lines(chunk_size=1):
        if not line:
            if "data" in event:
                yield event
            event = {}
            continue
        name, _, value = line.decode().partition(": ")
        event[name] = json.loads(value) if name == "data" else value


def test_the_past_is_a_result_and_the_future_events(server: str, topic: Topic) -> None:
    topic.publish(id="1.1", publication_id="before", data={"n": 0})
    with greeted(server, key_of(topic)) as client:
        subscribe(client, topic)
        result = client.wait_for(lambda f: f["type"] == "result")
        assert (result["part"], result["last"]) == (0, True)
        (row,) = result["items"]
        assert (row["id"], row["document"], row["topic_id"]) == ("before", {"n": 0}, "1.1")
        ready(client)
        answer = topic.publish(id="1.2", publication_id="after", data={"n": 1})
        assert answer["matched_subscribers"] == 1
        (event,) = events(client, "t", 1)
        assert (event["seq"], event["match"], event["key"]) == (1, "add", "after")
        assert event["position"] == answer["position"]
        assert event["document"] == {"n": 1}
        assert event["topic_id"] == "1.2"


def test_a_page_follows_a_subscription_with_a_ticket_and_nothing_else(
    server: str, topic: Topic
) -> None:
    subscription = topic.subscribe(id="1")
    first = topic.publish(id="1", publication_id="a")
    topic.publish(id="1", publication_id="b")
    asked = {"topic": topic.name, "subscription_id": subscription["subscription_id"]}
    answer = topic.caller.post("/v1/realtime/tickets", {"live": asked})
    assert answer.status_code == 201, answer.text
    url = topic.caller.base + answer.json()["url"]
    for headers, expected in (
        ({}, ["a", "b"]),
        # As an EventSource does when it reconnects.
        ({"Last-Event-ID": first["position"]}, ["b"]),
    ):
        with requests.get(url, headers=headers, stream=True, timeout=60) as stream:
            assert stream.status_code == 200, stream.text
            changes = (event for event in _events(stream) if event["event"] == "event")
            assert [next(changes)["data"]["key"] for _ in expected] == expected
    for wrong in ({**asked, "topic": "other"}, {**asked, "subscription_id": "nobody's"}):
        refusal = topic.caller.post("/v1/realtime/tickets", {"live": wrong})
        problem(refusal, 404, "not_found")
    little = with_key(server, make_key(topic.account.tenant, scopes=["documents:read"]))
    problem(little.post("/v1/realtime/tickets", {"live": asked}), 403, "missing_scope")


def test_publishing_over_a_connection_is_answered_like_the_call(server: str, topic: Topic) -> None:
    with greeted(server, key_of(topic)) as client:
        ack = client.ask(
            "publish", "w", topic=topic.name, topic_id="1", data={"n": 1}, publication_id="p"
        )
        assert (ack["type"], ack["publication_id"], ack["matched_subscribers"]) == ("ack", "p", 0)
        refusal = client.ask("publish", "w2", topic=topic.name, topic_id=7)
        assert refusal["error"]["code"] == "invalid_body"
        refusal = client.ask("publish", "w3", topic="other", topic_id="1")
        assert refusal["error"]["code"] == "not_found"
    page = topic.caller.get(f"{topic.path}/publications?id=1").json()
    assert names(page["items"]) == ["p"]


def test_positions_are_distinct_and_their_order_is_that_of_what_is_read(
    server: str, topic: Topic
) -> None:
    with greeted(server, key_of(topic)) as client:
        subscribe(client, topic)
        ready(client)
        for number in range(30):
            client.send(
                type="publish",
                id=f"w{number}",
                topic=topic.name,
                topic_id=f"1.{number % 3}",
                publication_id=f"p{number}",
            )
        pushed = events(client, "t", 30)
    positions = [event["position"] for event in pushed]
    assert len(set(positions)) == 30
    assert [event["seq"] for event in pushed] == list(range(1, 31))
    page = topic.caller.get(f"{topic.path}/publications?id=1").json()
    assert [event["key"] for event in pushed] == names(page["items"])
    assert positions == [item["position"] for item in page["items"]]


def test_a_reconnected_client_misses_nothing(server: str, topic: Topic) -> None:
    with greeted(server, key_of(topic)) as client:
        subscribe(client, topic)
        ready(client)
        topic.publish(id="1", publication_id="seen")
        (event,) = events(client, "t", 1)
    topic.publish(id="1", publication_id="missed")
    with greeted(server, key_of(topic)) as client:
        subscribe(client, topic, resume=event["resume"])
        ready(client)
        topic.publish(id="1", publication_id="later")
        again = events(client, "t", 2)
    assert [event["key"] for event in again] == ["missed", "later"]
    assert [event["seq"] for event in again] == [2, 3]


def test_a_client_that_reconnects_too_late_starts_over(server: str, topic: Topic) -> None:
    with greeted(server, key_of(topic)) as client:
        subscribe(client, topic)
        token = ready(client)["resume"]
    name = token.split(".")[0]
    assert topic.caller.delete(f"{topic.path}/subscriptions/{name}").status_code == 204
    topic.publish(id="1", publication_id="p")
    with greeted(server, key_of(topic)) as client:
        subscribe(client, topic, resume=token)
        assert client.wait_for(lambda f: f["type"] == "reset")["reason"] == "expired"
        result = client.wait_for(lambda f: f["type"] == "result")
        assert [row["id"] for row in result["items"]] == ["p"]
        ready(client)


def test_an_unsubscribe_ends_the_subscription(server: str, topic: Topic) -> None:
    with greeted(server, key_of(topic)) as client:
        subscribe(client, topic)
        ready(client)
        client.send(type="unsubscribe", id="t")
        assert client.answer("t")["error"] is None
        wait_until(
            lambda: topic.publish(id="1")["matched_subscribers"] == 0,
            what="the subscription to end",
        )


def test_a_token_is_valid_only_for_its_caller(server: str, topic: Topic) -> None:
    with greeted(server, key_of(topic)) as client:
        subscribe(client, topic)
        token = ready(client)["resume"]
    other = make_key(topic.account.tenant)
    with greeted(server, other) as client:
        subscribe(client, topic, resume=token)
        assert client.answer("t")["error"]["code"] == "invalid_body"


def test_a_subscription_made_by_a_call_is_followed_from_its_beginning(
    server: str, topic: Topic
) -> None:
    topic.publish(id="1", publication_id="before")
    subscription = topic.subscribe(id="1", **{"from": "-1h", "to": "+1h"})
    topic.publish(id="1", publication_id="between")
    with greeted(server, key_of(topic)) as client:
        client.send(
            type="subscribe",
            id="t",
            topic=topic.name,
            subscription_id=subscription["subscription_id"],
        )
        topic.publish(id="1", publication_id="after")
        assert [event["key"] for event in events(client, "t", 2)] == ["between", "after"]


def test_a_stream_resumes_after_the_last_event(topic: Topic) -> None:
    subscription = topic.subscribe(id="1", **{"from": "-1h", "to": "+1h"})
    first = topic.publish(id="1", publication_id="first")
    with streamed(topic, subscription["subscription_id"]) as stream:
        event = next(e for e in stream if e["event"] == "event")
        assert event["id"] == first["position"]
        assert event["data"]["key"] == "first"
    topic.publish(id="1", publication_id="second")
    with streamed(
        topic, subscription["subscription_id"], **{"Last-Event-ID": event["id"]}
    ) as stream:
        assert next(e for e in stream if e["event"] == "event")["data"]["key"] == "second"
        topic.publish(id="1", publication_id="third")
        assert next(e for e in stream if e["event"] == "event")["data"]["key"] == "third"


def test_two_streams_of_one_subscription_see_the_same(topic: Topic) -> None:
    subscription = topic.subscribe(id="1", **{"from": "-1h", "to": "+1h"})
    for number in range(5):
        topic.publish(id="1", publication_id=f"p{number}")

    def six_keys(stream: Iterator[Frame]) -> list[str]:
        return [next(e for e in stream if e["event"] == "event")["data"]["key"] for _ in range(6)]

    with (
        streamed(topic, subscription["subscription_id"]) as one,
        streamed(topic, subscription["subscription_id"]) as other,
    ):
        topic.publish(id="1", publication_id="p5")
        assert six_keys(one) == six_keys(other) == [f"p{number}" for number in range(6)]


def test_a_stream_ends_with_its_subscription(topic: Topic) -> None:
    subscription = topic.subscribe(id="1", **{"from": "-1h", "to": "+2s"})
    with streamed(topic, subscription["subscription_id"]) as stream:
        frames = list(stream)
    assert frames[-1]["data"] == {"type": "end", "id": "live", "error": None}
    missing = f"{topic.path}/subscriptions/{subscription['subscription_id']}/live"
    problem(topic.caller.get(missing), 404, "not_found")


@pytest.mark.parametrize("how", ["delete", "drop", "revoke"])
def test_delivery_ends_with_its_subscription_topic_or_key(server: str, how: str) -> None:
    topic = make_topic(server)
    key = make_key(topic.account.tenant)
    with greeted(server, key) as client:
        subscribe(client, topic)
        token = ready(client)["resume"]
        if how == "delete":
            name = token.split(".")[0]
            path = f"{topic.path}/subscriptions/{name}"
            assert topic.caller.delete(path).status_code == 204
            assert client.answer("t")["error"]["code"] == "subscription_ended"
        elif how == "drop":
            assert topic.caller.delete(topic.control_path).status_code == 204
            assert client.answer("t")["error"]["code"] == "not_found"
        else:
            with scoped(tenant_id=topic.account.tenant.id):
                ApiKey.objects.exclude(scopes__contains=["admin"]).delete()
            assert client.answer("t")["error"]["code"] == "invalid_credentials"


def test_members_see_who_follows_a_topic_and_may_end_it(server: str, topic: Topic) -> None:
    listed = f"/api/v1/tenants/{topic.account.slug}/subscriptions"
    with greeted(server, key_of(topic)) as client:
        subscribe(client, topic)
        ready(client)
        rows: list[Frame] = []

        def shown() -> bool:
            rows[:] = topic.caller.get(listed).json()["items"]
            return len(rows) == 1

        wait_until(shown, what="the subscription to be listed")
        assert (rows[0]["topic"], rows[0]["state"]) == (topic.name, "live")
        assert rows[0]["query"]["topic_id"] == "1"
        assert topic.caller.delete(f"{listed}/{rows[0]['id']}").status_code == 204
        assert client.answer("t")["error"]["code"] == "subscription_ended"


def test_subscribers_and_publishers_need_scopes(server: str, topic: Topic) -> None:
    with greeted(server, make_key(topic.account.tenant, scopes=["documents:read"])) as client:
        subscribe(client, topic)
        assert client.answer("t")["error"]["code"] == "missing_scope"
        refusal = client.ask("publish", "w", topic=topic.name, topic_id="1")
        assert refusal["error"]["code"] == "missing_scope"


def test_tenants_do_not_receive_publications_of_others(server: str, topic: Topic) -> None:
    other = make_topic(server)
    with (
        greeted(server, key_of(topic)) as mine,
        greeted(server, key_of(other)) as yours,
    ):
        subscribe(mine, topic)
        subscribe(yours, other)
        ready(mine)
        token = ready(yours)["resume"]
        topic.publish(id="1", publication_id="mine")
        other.publish(id="1", publication_id="yours")
        assert events(mine, "t", 1)[0]["key"] == "mine"
        assert events(yours, "t", 1)[0]["key"] == "yours"
        subscribe(mine, topic, "stolen", resume=token)
        assert mine.answer("stolen")["error"]["code"] == "invalid_body"
    assert with_key(server, key_of(topic)).get("/v1/whoami").status_code == 200


def test_publications_have_the_requested_form(server: str) -> None:
    topic = make_topic(server)
    data = {"n": {"$numberLong": "1"}, "m": {"$numberInt": "1"}}
    with greeted(server, key_of(topic), ejson="canonical") as client:
        subscribe(client, topic)
        ready(client)
        topic.publish(id="1", data=data)
        (event,) = events(client, "t", 1)
        assert event["document"] == data
        subscribe(client, topic, "later")
        result = client.wait_for(lambda f: f["type"] == "result" and f["id"] == "later")
        assert [item["document"] for item in result["items"]] == [data]
