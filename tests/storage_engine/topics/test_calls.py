"""Publishing, subscribing and listing by REST."""

from __future__ import annotations

from typing import Any

import pytest

from tenants.models import ApiKey
from tests.caller import Caller, problem, with_key
from tests.make import make_key, make_tenant
from tests.storage_engine.topics.topic_client import Topic, make_topic, names


@pytest.fixture(scope="module")
def shared(server: str) -> Topic:
    """A topic for calls that change nothing."""
    return make_topic(server)


@pytest.fixture(scope="module")
def shared_city(server: str) -> Topic:
    return make_topic(server, name="traffic", kind="geo")


def test_a_publication_matches_subscriptions_at_above_and_below_its_id(topic: Topic) -> None:
    answer = topic.publish(id="1.4", data={"text": "hello"}, publication_id="p")
    assert answer["publication_id"] == "p"
    assert answer["matched_subscribers"] == 0
    for identity in ("1", "1.4", "1.4.2"):
        page = topic.caller.get(f"{topic.path}/publications?id={identity}").json()
        assert names(page["items"]) == ["p"], identity
        assert page["next_cursor"] is None
    (item,) = topic.caller.get(f"{topic.path}/publications?id=1.4").json()["items"]
    assert item["data"] == {"text": "hello"}
    assert item["position"] == answer["position"]
    assert item["id"] == "1.4"
    assert topic.caller.get(f"{topic.path}/publications?id=1.5").json()["items"] == []


def test_a_subscription_is_answered_with_the_past_and_counted_by_later_ones(topic: Topic) -> None:
    topic.publish(id="1", publication_id="before")
    subscription = topic.subscribe(id="1.2", **{"from": "-1h", "to": "+1h"})
    assert names(subscription["publications"]) == ["before"]
    assert topic.publish(id="1.2.3")["matched_subscribers"] == 1
    assert topic.publish(id="2")["matched_subscribers"] == 0


def test_a_publication_is_not_delivered_before_its_time(topic: Topic) -> None:
    topic.publish(id="1", publication_id="old", at="-30s")
    topic.publish(id="1", publication_id="new", at="-5s")
    subscription = topic.subscribe(id="1", **{"from": "-10s", "to": "+10s"})
    assert names(subscription["publications"]) == ["new"]


def test_areas_on_earth_meet_when_they_intersect(city: Topic) -> None:
    stephansdom = {"center": [16.3731, 48.2085], "radius_m": 100}
    city.publish(geo=stephansdom, publication_id="incident")
    near = city.subscribe(geo={"center": [16.3745, 48.2085], "radius_m": 50}, **{"from": "-1h"})
    far = city.subscribe(geo={"center": [16.4, 48.2085], "radius_m": 50}, **{"from": "-1h"})
    boxed = city.subscribe(geo={"box": [16.0, 48.0, 17.0, 49.0]}, **{"from": "-1h"})
    assert [names(s["publications"]) for s in (near, far, boxed)] == [
        ["incident"],
        [],
        ["incident"],
    ]
    (shown,) = near["publications"]
    assert shown["geo"] == stephansdom


def test_a_plane_has_units_of_its_own(server: str) -> None:
    grid = {"bounds": [0, 0, 500, 500], "sides": 2, "depth": 5}
    game = make_topic(server, name="game", kind="plane", grid=grid)
    game.publish(geo={"center": [10, 10], "radius": 2}, publication_id="p")
    subscription = game.subscribe(geo={"box": [11, 11, 20, 20]}, **{"from": "-1h"})
    assert names(subscription["publications"]) == ["p"]


def test_a_filter_decides_on_the_data(topic: Topic) -> None:
    topic.publish(id="1", data={"lanes": 1}, publication_id="small")
    topic.publish(id="1", data={"lanes": 3}, publication_id="large")
    subscription = topic.subscribe(id="1", filter={"lanes": {"$gt": 1}}, **{"from": "-1h"})
    assert names(subscription["publications"]) == ["large"]
    assert topic.publish(id="1", data={"lanes": 2})["matched_subscribers"] == 1
    assert topic.publish(id="1", data={"lanes": 0})["matched_subscribers"] == 0


def test_a_party_that_publishes_or_subscribes_may_see_its_like(topic: Topic) -> None:
    topic.publish(id="1", publication_id="first")
    joined = topic.publish(id="1", publication_id="second", self_join=True)
    assert names(joined["publications"]) == ["first"]
    topic.subscribe(id="1", subscriber="ann", to="+1h")
    answer = topic.subscribe(id="1", subscriber="bob", to="+1h", self_join=True)
    assert [other["subscriber"] for other in answer["subscriptions"]] == ["ann"]


def test_a_subscriber_can_request_no_duplicates(topic: Topic) -> None:
    topic.publish(id="1", publication_id="p")
    mine = {"id": "1", "from": "-1h", "to": "+1h", "subscriber": "ann", "unseen_only": True}
    assert names(topic.subscribe(**mine)["publications"]) == ["p"]
    assert names(topic.subscribe(**mine)["publications"]) == []
    assert names(topic.subscribe(**{**mine, "subscriber": "bob"})["publications"]) == ["p"]


def test_an_expired_publication_is_not_found(topic: Topic) -> None:
    topic.publish(id="1", at="-1m", expires_at="+1h", publication_id="alive")
    refusal = topic.caller.post(
        f"{topic.path}/publications", {"id": "1", "at": "-1m", "expires_at": "-30s"}
    )
    assert refusal.status_code in (201, 400)
    page = topic.caller.get(f"{topic.path}/publications?id=1&from=-1h").json()
    assert names(page["items"]) == ["alive"]


def test_a_publication_is_published_once_under_its_id(topic: Topic) -> None:
    body = {"id": "1", "data": {"n": 1}, "publication_id": "p"}
    first = topic.caller.post(f"{topic.path}/publications", body)
    again = topic.caller.post(f"{topic.path}/publications", body)
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json()["position"] == first.json()["position"]
    assert again.headers["Idempotency-Replayed"] == "true"
    for changed in ({"data": {"n": 2}}, {"data": None}, {"id": "2"}, {"id": "1.1"}):
        other = topic.caller.post(f"{topic.path}/publications", {**body, **changed})
        problem(other, 422, "idempotency_mismatch")
    assert len(topic.caller.get(f"{topic.path}/publications?id=1").json()["items"]) == 1


def test_an_idempotency_key_names_the_publication(topic: Topic) -> None:
    calls = [
        topic.caller.post(f"{topic.path}/publications", {"id": "1"}, Idempotency_Key="once")
        for _ in range(2)
    ]
    assert calls[0].json() == {**calls[1].json(), "matched_subscribers": 0}
    assert len(topic.caller.get(f"{topic.path}/publications?id=1").json()["items"]) == 1


def test_an_idempotency_key_repeats_the_first_subscription(topic: Topic) -> None:
    path, body = f"{topic.path}/subscriptions", {"id": "1"}
    first = topic.caller.post(path, body, Idempotency_Key="once")
    again = topic.caller.post(path, body, Idempotency_Key="once")
    assert (again.status_code, again.json()) == (201, first.json())
    problem(
        topic.caller.post(path, {"id": "2"}, Idempotency_Key="once"), 422, "idempotency_mismatch"
    )
    assert topic.publish(id="1")["matched_subscribers"] == 1


def test_pages_of_publications_are_whole(topic: Topic) -> None:
    for number in range(7):
        topic.publish(id="1", publication_id=f"p{number}")
    seen, path = list[str](), f"{topic.path}/publications?id=1&limit=3"
    cursor: str | None = ""
    while cursor is not None:
        page = topic.caller.get(path + (f"&cursor={cursor}" if cursor else "")).json()
        seen += names(page["items"])
        cursor = page["next_cursor"]
    assert seen == [f"p{number}" for number in range(7)]
    problem(topic.caller.get(path + "&cursor=abc"), 400, "invalid_cursor")


def test_a_subscription_ends_once(topic: Topic) -> None:
    subscription = topic.subscribe(id="1")["subscription_id"]
    path = f"{topic.path}/subscriptions/{subscription}"
    assert topic.caller.delete(path).status_code == 204
    problem(topic.caller.delete(path), 404, "not_found")
    assert topic.publish(id="1")["matched_subscribers"] == 0


@pytest.mark.parametrize(
    ("call", "body", "pointer"),
    [
        ("publications", {}, "/id"),
        ("publications", {"id": 7}, "/id"),
        ("publications", {"id": "1", "geo": {}}, "/id"),
        ("publications", {"id": "1..2"}, "/id"),
        ("publications", {"id": "1", "data": [1]}, "/data"),
        ("publications", {"id": "1", "at": "yesterday"}, "/at"),
        ("publications", {"id": "1", "expires_in_s": -1}, "/expires_in_s"),
        ("publications", {"id": "1", "expires_in_s": 1, "expires_at": "+1s"}, "/expires_in_s"),
        ("publications", {"id": "1", "expires_at": "+100d"}, "/expires_at"),
        ("publications", {"id": "1", "publication_id": ""}, "/publication_id"),
        ("publications", {"id": "1", "surprise": 1}, "/surprise"),
        ("subscriptions", {}, "/id"),
        ("subscriptions", {"id": "1", "from": "+2s", "to": "+1s"}, "/to"),
        ("subscriptions", {"id": "1", "to": "-1s"}, "/to"),
        ("subscriptions", {"id": "1", "unseen_only": True}, "/subscriber"),
        ("subscriptions", {"id": "1", "unseen_only": 1}, "/unseen_only"),
        ("subscriptions", {"id": "1", "webhook": "x"}, "/webhook"),
    ],
)
def test_the_error_names_the_invalid_value(
    shared: Topic, call: str, body: object, pointer: str
) -> None:
    topic = shared
    details = problem(topic.caller.post(f"{topic.path}/{call}", body), 400, "invalid_body")
    assert [error["pointer"] for error in details["errors"]] == [pointer]


@pytest.mark.parametrize(
    "geo",
    [
        {},
        {"center": [16.3], "radius_m": 5},
        {"center": [16.3, 48.2]},
        {"center": [16.3, 48.2], "radius": 5},
        {"center": [16.3, 48.2], "radius_m": -5},
        {"center": [16.3, 480.2], "radius_m": 5},
        {"box": [1, 2, 3]},
        "here",
    ],
)
def test_invalid_areas_are_rejected(shared_city: Topic, geo: object) -> None:
    answer = shared_city.caller.post(f"{shared_city.path}/publications", {"geo": geo})
    problem(answer, 400, "invalid_body")


def test_filters_are_judged_as_everywhere(topic: Topic) -> None:
    def check_refused(query_filter: object, code: str) -> None:
        body = {"id": "1", "filter": query_filter}
        problem(topic.caller.post(f"{topic.path}/subscriptions", body), 400, code)

    check_refused({"$and": 1}, "invalid_filter")
    check_refused({"$where": "1"}, "unsupported_operator")


def test_a_publication_carries_no_more_than_its_topic_allows(server: str) -> None:
    small = make_topic(server, max_data_bytes=100)
    body = {"id": "1", "data": {"text": "x" * 200}}
    answer = small.caller.post(f"{small.path}/publications", body)
    problem(answer, 413, "document_too_large")


def test_times_may_have_three_forms(server: str) -> None:
    topic = make_topic(server, retention_s=400 * 24 * 3600)
    for at in ("2026-01-02T03:04:05.678Z", 1_767_323_045_678, "1767323045678"):
        answer = topic.publish(id="1", at=at, expires_at="+1h")
        page = topic.caller.get(f"{topic.path}/publications?id=1&from=0").json()
        result = next(p for p in page["items"] if p["position"] == answer["position"])
        assert result["at"] == "2026-01-02T03:04:05.678Z"


def test_data_keeps_its_types(topic: Topic) -> None:
    data: dict[str, Any] = {"n": {"$numberLong": "5"}, "d": {"$numberDecimal": "1.10"}}
    topic.publish(id="1", data=data)
    page = topic.caller.get(f"{topic.path}/publications?id=1", Rillbase_EJSON="canonical").json()
    assert page["items"][0]["data"] == data


def test_scopes_decide_what_a_key_may_do(server: str, topic: Topic) -> None:
    reader = with_key(server, make_key(topic.account.tenant, scopes=["topics:read"]))
    writer = with_key(server, make_key(topic.account.tenant, scopes=["topics:write"]))
    stranger = with_key(server, make_key(topic.account.tenant, scopes=["documents:read"]))
    publications, subscriptions = f"{topic.path}/publications", f"{topic.path}/subscriptions"
    assert reader.post(subscriptions, {"id": "1"}).status_code == 201
    assert writer.post(publications, {"id": "1"}).status_code == 201
    problem(reader.post(publications, {"id": "1"}), 403, "missing_scope")
    problem(writer.post(subscriptions, {"id": "1"}), 403, "missing_scope")
    problem(stranger.get(f"{publications}?id=1"), 403, "missing_scope")


def test_end_users_are_refused(server: str, topic: Topic) -> None:
    key = make_key(
        topic.account.tenant, kind=ApiKey.Kind.PUBLISHABLE, scopes=["topics:read", "topics:write"]
    )
    page = Caller(server, {"Rillbase-Key": key})
    problem(page.get(f"{topic.path}/publications?id=1"), 403, "forbidden")
    problem(page.post(f"{topic.path}/publications", {"id": "1"}), 403, "forbidden")


def test_tenants_do_not_meet(server: str) -> None:
    mine, yours = make_topic(server), make_topic(server)
    mine.publish(id="1", publication_id="secret")
    subscription = mine.subscribe(id="1")
    assert yours.caller.get(f"{yours.path}/publications?id=1").json()["items"] == []
    assert names(yours.subscribe(id="1", **{"from": "-1h"})["publications"]) == []
    assert yours.publish(id="2")["matched_subscribers"] == 0
    path = f"{yours.path}/subscriptions/{subscription['subscription_id']}"
    problem(yours.caller.delete(path), 404, "not_found")
    problem(yours.caller.get(f"{path}/live"), 404, "not_found")
    assert mine.publish(id="1")["matched_subscribers"] == 1


def test_a_missing_topic_is_not_found(topic: Topic) -> None:
    for name in ("other", "Not-A-Name", "x" * 70):
        problem(topic.caller.get(f"/v1/topics/{name}/publications?id=1"), 404, "not_found")
    stranger = make_tenant()
    caller = with_key(topic.caller.base, stranger.admin_key)
    problem(caller.get(f"{topic.path}/publications?id=1"), 404, "not_found")
