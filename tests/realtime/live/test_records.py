"""What members see in the list of their tenant's subscriptions."""

from __future__ import annotations

from typing import Any

import pytest

from tests.documents.collection import CollectionClient
from tests.make import make_key
from tests.realtime.client import Client, greeted, opened
from tests.realtime.live.answer import subscribe
from tests.realtime.live.member import Member
from tests.realtime.live.test_rights import anonymous_key, change_rules
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.usefixtures("frequent_records"),
    pytest.mark.backend(
        "postgres", reason="the list of subscriptions does not depend on the backend"
    ),
]


def listed(member: Member) -> dict[str, Any]:
    (item,) = member.caller.get(member.path).json()["items"] or [{}]
    result: dict[str, Any] = item
    return result


def test_the_list_follows_the_events_of_a_subscription(
    client: Client, todos: CollectionClient
) -> None:
    member = Member(todos)
    subscribe(client, "s", collection=todos.name, filter={"n": {"$gt": 0}})
    wait_until(lambda: listed(member).get("state") == "live", what="the subscription to be live")
    before = listed(member)
    assert (before["name"], before["collection"]) == ("s", todos.name)
    assert (before["query"], before["events"]) == ({"filter": {"n": {"$gt": 0}}}, 0)
    for n in range(3):
        todos.insert({"n": n})
    wait_until(lambda: listed(member).get("events") == 2, what="both events to be counted")
    after = listed(member)
    assert (after["id"], after["query_hash"]) == (before["id"], before["query_hash"])
    assert after["age_s"] > before["age_s"]


def test_the_list_follows_the_caller_and_the_rules_of_a_subscription(
    server: str, todos: CollectionClient
) -> None:
    member = Member(todos)
    change_rules(todos, {"read": {"public": True}})
    with opened(server) as client:
        client.send(type="hello", key=anonymous_key(todos))
        subscribe(client, "s", collection=todos.name)
        wait_until(lambda: bool(listed(member)), what="the subscription to be listed")
        anonymous = listed(member)
        change_rules(todos, {"read": {"public": False}})
        wait_until(
            lambda: listed(member).get("query_hash") not in (None, anonymous["query_hash"]),
            what="the query under the new rules",
        )
        client.send(type="auth", id="a", token=make_key(todos.account.tenant))
        wait_until(
            lambda: listed(member).get("principal") not in (None, anonymous["principal"]),
            what="the other caller",
        )


def test_the_list_shows_who_holds_a_subscription_now(server: str, todos: CollectionClient) -> None:
    member = Member(todos)
    first, second = make_key(todos.account.tenant), make_key(todos.account.tenant)
    with greeted(server, first) as client:
        subscribe(client, "s", collection=todos.name)
        wait_until(lambda: bool(listed(member)), what="the subscription to be listed")
        before = listed(member)
        client.send(type="auth", id="a", token=second)
        wait_until(
            lambda: listed(member).get("principal") not in (None, before["principal"]),
            what="the other caller",
        )
        # Both keys have the same rights, so the query is the same.
        assert listed(member)["query_hash"] == before["query_hash"]
