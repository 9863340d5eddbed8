"""A subscriber receives nothing that it may not read, from the moment the rules change."""

from __future__ import annotations

import json

import pytest
from django.utils import timezone

from documents.models import Collection
from foundation.scope import scoped
from tenants.models import ApiKey
from tests.caller import with_key
from tests.documents.collection import CollectionClient, make_collection
from tests.make import make_key, make_tenant
from tests.realtime.client import Client, greeted, opened
from tests.realtime.live.answer import begin, subscribe
from tests.realtime.live.conftest import BackgroundProcesses


def change_rules(todos: CollectionClient, rules: object) -> None:
    """Change the rules as a member does."""
    caller = with_key(todos.caller.base, todos.account.admin_key)
    path = f"/api/v1/tenants/{todos.account.slug}/collections/{todos.name}"
    answer = caller.patch(path, {"access_rules": rules})
    assert answer.status_code == 200, answer.text


def anonymous_key(todos: CollectionClient) -> str:
    return make_key(todos.account.tenant, kind=ApiKey.Kind.PUBLISHABLE, scopes=["documents:read"])


@pytest.fixture
def ruled(server: str, background: BackgroundProcesses) -> CollectionClient:
    return make_collection(server, rules={"read": {"public": True}})


def test_the_rule_is_part_of_the_query(server: str, ruled: CollectionClient) -> None:
    ruled.insert({"_id": "a", "public": True})
    ruled.insert({"_id": "b", "public": False, "secret": "s3cr3t"})
    with opened(server) as client:
        client.send(type="hello", key=anonymous_key(ruled))
        answer = subscribe(client, "s", collection=ruled.name)
        assert answer.documents == [{"_id": "a", "public": True}]
        ruled.caller.patch(f"{ruled.path}/documents/b", {"$set": {"n": 1}})
        ruled.caller.patch(f"{ruled.path}/documents/a", {"$set": {"public": False}})
        answer.until_shows([])
        (gone,) = answer.events
        assert (gone["match"], gone["key"], gone["reason"]) == ("remove", "a", "left")
        assert "s3cr3t" not in json.dumps(answer.frames)


def test_changes_of_a_hidden_document_that_a_filter_names_give_no_frames(
    server: str, ruled: CollectionClient
) -> None:
    ruled.insert({"_id": "hidden", "public": False})
    with opened(server) as client:
        client.send(type="hello", key=anonymous_key(ruled))
        query_filter = {"_id": {"$in": ["hidden", "absent", "seen"]}}
        answer = subscribe(client, "s", collection=ruled.name, filter=query_filter)
        assert answer.documents == []
        ruled.caller.patch(f"{ruled.path}/documents/hidden", {"$set": {"n": 1}})
        ruled.caller.delete(f"{ruled.path}/documents/hidden")
        ruled.insert({"_id": "seen", "public": True})
        answer.until_shows([{"_id": "seen", "public": True}])
        assert [event["key"] for event in answer.events] == ["seen"]
        assert "hidden" not in json.dumps(answer.frames)


def test_documents_that_cannot_be_evaluated_are_counted_if_the_rule_shows_them(
    server: str, ruled: CollectionClient
) -> None:
    costly = {"$expr": {"$gte": [{"$size": {"$range": [0, "$n"]}}, 0]}}
    too_large = 10**8
    ruled.insert_many([{"_id": n, "public": n > 1, "n": too_large} for n in range(3)])
    with opened(server) as client:

        def notice_count() -> int:
            result: int = client.wait_for(lambda frame: frame["type"] == "notice")["count"]
            return result

        client.send(type="hello", key=anonymous_key(ruled))
        answer = subscribe(client, "s", collection=ruled.name, filter=costly)
        assert notice_count() == 1
        hidden_and_shown = [{"_id": n, "public": n > 10, "n": too_large} for n in range(10, 13)]
        ruled.insert_many([*hidden_and_shown, {"_id": "last", "public": True, "n": 1}])
        answer.until_shows([{"_id": "last", "public": True, "n": 1}])
        total = 0
        while total < 2:
            total += notice_count()
        assert total == 2


def test_a_rule_tightened_between_two_writes_hides_the_second(
    server: str, ruled: CollectionClient
) -> None:
    with opened(server) as client:
        client.send(type="hello", key=anonymous_key(ruled))
        answer = subscribe(client, "s", collection=ruled.name)
        ruled.insert({"_id": "a", "public": True})
        answer.until_shows([{"_id": "a", "public": True}])
        change_rules(ruled, {"read": {"public": True, "open": True}})
        ruled.insert({"_id": "b", "public": True, "text": "hidden"})
        ruled.insert({"_id": "c", "public": True, "open": True})
        answer.until_shows([{"_id": "c", "public": True, "open": True}])
        assert "hidden" not in json.dumps(answer.frames)
        assert any(frame["type"] == "reset" for frame in answer.frames)


def test_a_rule_that_denies_ends_the_subscription(server: str, ruled: CollectionClient) -> None:
    with opened(server) as client:
        client.send(type="hello", key=anonymous_key(ruled))
        answer = subscribe(client, "s", collection=ruled.name)
        change_rules(ruled, {})
        assert answer.until("end")["error"]["code"] == "forbidden"


def test_a_deleted_collection_ends_its_subscriptions(
    client: Client, todos: CollectionClient
) -> None:
    answer = subscribe(client, "s", collection=todos.name)
    with scoped(tenant_id=todos.account.tenant.id):
        Collection.objects.filter(pk=todos.collection.pk).update(state="deleting")
    assert answer.until("end")["error"]["code"] == "not_found"


def test_a_revoked_key_ends_its_subscriptions(server: str, todos: CollectionClient) -> None:
    key = make_key(todos.account.tenant)
    with greeted(server, key) as client:
        answer = subscribe(client, "s", collection=todos.name)
        with scoped(tenant_id=todos.account.tenant.id):
            ApiKey.objects.filter(key_id=key.split("_")[2]).update(revoked_at=timezone.now())
        assert answer.until("end")["error"]["code"] == "invalid_credentials"
        assert client.closed()[0] == 4401


def test_another_tenants_collection_of_the_same_name_is_another_one(
    server: str, todos: CollectionClient
) -> None:
    stranger = make_collection(server, name=todos.name, account=make_tenant(plan="dedicated"))
    key = make_key(stranger.account.tenant)
    with greeted(server, key) as client:
        answer = subscribe(client, "s", collection=todos.name)
        todos.insert({"_id": "a", "private": True})
        stranger.insert({"_id": "b"})
        answer.until_shows([{"_id": "b"}])
        assert "private" not in json.dumps(answer.frames)


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({"filter": {"$nonsense": 1}}, "unsupported_operator"),
        ({"filter": {"$expr": {"$lt": ["$at", "$$NOW"]}}}, "not_live"),
        ({"limit": 10_001}, "invalid_body"),
        ({"offset": 9_999, "limit": 2}, "invalid_body"),
        ({"options": {"deliver": "never"}}, "invalid_body"),
        ({"surprise": 1}, "invalid_body"),
        ({"collection": "no-such-thing"}, "not_found"),
    ],
)
def test_what_cannot_be_watched_is_refused_by_name(
    client: Client, todos: CollectionClient, members: dict[str, object], code: str
) -> None:
    refusal = client.ask("subscribe", "s", **{"collection": todos.name, **members})
    assert refusal["error"]["code"] == code
    begin(client, "s", collection=todos.name).until("ready")
