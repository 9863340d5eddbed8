"""Where a change stopped on its way to a client, according to real processes."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from datetime import datetime

import pytest

from realtime.delivery_trace import evidence, wording
from tests.documents.collection import CollectionClient, make_collection
from tests.make import make_key
from tests.own_server import another_server
from tests.realtime.client import Client, greeted, opened
from tests.realtime.live.answer import subscribe
from tests.realtime.live.conftest import ROOT, BackgroundProcesses
from tests.realtime.live.member import Member, stages, step
from tests.realtime.live.test_bounds import key_of
from tests.realtime.live.test_rights import anonymous_key

pytestmark = pytest.mark.usefixtures("frequent_records")


def test_a_delivered_event_is_explained_with_its_number(
    client: Client, todos: CollectionClient
) -> None:
    answer = subscribe(client, "s", collection=todos.name, filter={"priority": {"$gt": 3}})
    todos.insert({"_id": "a", "priority": 5})
    answer.until_shows([{"_id": "a", "priority": 5}])
    trace = Member(todos).verdict("s", "a", "told")
    assert (trace["version"], trace["newest_version"], trace["document"]) == (1, 1, "a")
    assert stages(trace) == dict.fromkeys(
        ("write", "publication", "matching", "filter", "hub", "delivery"), "passed"
    )
    delivery = step(trace, "delivery")
    assert delivery["facts"]["first_event"] == answer.events[0]["seq"]
    assert step(trace, "matching")["facts"]["found_by"] == "range"
    assert not step(trace, "write")["facts"]["transaction"].isdecimal()
    assert step(trace, "hub")["facts"]["match"] == "add"


def test_no_step_of_a_trace_has_a_time_before_that_of_its_cause(
    client: Client, todos: CollectionClient
) -> None:
    answer = subscribe(client, "s", collection=todos.name)
    names = [f"d{number:02}" for number in range(12)]
    for position, name in enumerate(names, 1):
        todos.insert({"_id": name})
        answer.until_shows([{"_id": earlier} for earlier in names[:position]])
    member = Member(todos)
    for name in names:
        trace = member.verdict("s", name, "told")
        times = [one["at"] for one in trace["steps"] if one["at"] is not None]
        assert len(times) == 4
        assert times == sorted(times)


def test_a_document_that_does_not_match_names_the_predicate_and_the_value(
    client: Client, todos: CollectionClient
) -> None:
    query_filter = {"done": False, "priority": {"$gt": 3}}
    subscribe(client, "s", collection=todos.name, filter=query_filter)
    todos.insert({"_id": "a", "done": False, "priority": 2})
    trace = Member(todos).verdict("s", "a", "no_match")
    assert stages(trace)["filter"] == "stopped"
    result = step(trace, "filter")
    assert "`priority` is 2; expected: greater than 3." in result["detail"]
    (part,) = [one for one in result["facts"]["explanation"]["reason"]["parts"] if one["decides"]]
    assert (json.loads(part["clause"]), part["found"]) == ({"priority": {"$gt": 3}}, ["2"])


def test_a_removal_names_the_predicate_that_no_longer_holds(
    client: Client, todos: CollectionClient
) -> None:
    answer = subscribe(client, "s", collection=todos.name, filter={"open": True})
    todos.insert({"_id": "a", "open": True})
    answer.until_shows([{"_id": "a", "open": True}])
    todos.caller.patch(f"{todos.path}/documents/a", {"$set": {"open": False}})
    answer.until_shows([])
    trace = Member(todos).verdict("s", "a", "told")
    assert step(trace, "hub")["facts"]["match"] == "remove"
    assert "no longer matches" in step(trace, "filter")["detail"]
    # The version before is remembered, too.
    assert Member(todos).why("s", "a", 1)["verdict"] == "told"
    todos.caller.delete(f"{todos.path}/documents/a")
    trace = Member(todos).verdict("s", "a", "no_match")
    assert trace["deleted"] is True


def test_the_explanation_distinguishes_the_access_rule_from_the_filter(
    server: str, background: BackgroundProcesses
) -> None:
    ruled = make_collection(server, rules={"read": {"public": True}})
    with opened(server) as client:
        client.send(type="hello", key=anonymous_key(ruled))
        subscribe(client, "s", collection=ruled.name, filter={"n": {"$lt": 9}})
        ruled.insert({"_id": "a", "n": 1, "public": False})
        trace = Member(ruled).verdict("s", "a", "hidden")
        assert (stages(trace)["filter"], stages(trace)["rule"]) == ("passed", "stopped")
        assert "`public` is false" in step(trace, "rule")["detail"]
        ruled.insert({"_id": "b", "n": 10, "public": True})
        assert Member(ruled).verdict("s", "b", "no_match")


def test_a_row_outside_the_window_is_reported_as_before_or_behind_it(
    client: Client, todos: CollectionClient
) -> None:
    todos.insert_many([{"_id": f"d{n}", "n": n} for n in range(1, 7)])
    subscribe(client, "s", collection=todos.name, sort=[["n", 1]], offset=1, limit=2)
    member = Member(todos)
    assert (
        "`limit` excludes it"
        in step(member.verdict("s", "d6", "outside_window"), "window")["detail"]
    )
    assert (
        "`offset` skips it" in step(member.verdict("s", "d1", "outside_window"), "window")["detail"]
    )
    assert member.verdict("s", "d2", "in_result")


@pytest.mark.backend("native", reason="writers to PostgreSQL publish their writes themselves")
def test_a_write_to_a_native_collection_waits_for_the_feed(
    changed_background: BackgroundProcesses, client: Client, todos: CollectionClient
) -> None:
    answer = subscribe(client, "s", collection=todos.name)
    todos.insert({"_id": "a", "n": 1})
    answer.until_shows([{"_id": "a", "n": 1}])
    changed_background.kill("relay")
    todos.insert({"_id": "b", "n": 2})
    member = Member(todos)
    trace = member.verdict("s", "b", "not_published")
    assert stages(trace) == {"write": "passed", "publication": "waiting"}
    assert step(trace, "publication")["detail"] == wording.NOT_FED
    assert member.why("s", "a")["verdict"] == "told"
    changed_background.start("relay")
    assert member.verdict("s", "b", "told")


@pytest.mark.backend("native", reason="for PostgreSQL, the outbox has the time of a publication")
def test_the_publication_of_entries_that_the_stream_has_dropped_follows_from_the_feed(
    client: Client, todos: CollectionClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscribe(client, "s", collection=todos.name, filter={"n": 1})
    monkeypatch.setattr(evidence, "ENTRIES", 0)
    member = Member(todos)
    first = todos.insert({"_id": "a", "n": 2})
    trace = member.verdict("s", "a", "no_match")
    publication = step(trace, "publication")
    assert (publication["detail"], publication["at"]) == (wording.PASSED_BY_FEED, None)
    write = step(trace, "write")
    assert datetime.fromisoformat(write["at"]) == datetime.fromisoformat(first["updated_at"])
    assert "transaction" in write["facts"]
    todos.caller.patch(f"{todos.path}/documents/a", {"$set": {"n": 3}})
    member.verdict("s", "a", "no_match")
    replaced = member.why("s", "a", 1)
    assert (stages(replaced)["write"], stages(replaced)["publication"]) == ("unknown", "passed")
    todos.caller.delete(f"{todos.path}/documents/a")
    deleted = member.verdict("s", "a", "no_match")
    assert (deleted["version"], deleted["deleted"]) == (3, True)
    assert (stages(deleted)["write"], step(deleted, "write")["at"]) == ("passed", None)


def test_documents_of_the_initial_answer_need_no_event(
    client: Client, todos: CollectionClient
) -> None:
    todos.insert({"_id": "a", "n": 1})
    subscribe(client, "s", collection=todos.name)
    trace = Member(todos).verdict("s", "a", "in_result")
    assert stages(trace)["hub"] == "stopped"


def test_throttled_changes_are_delivered_together(client: Client, todos: CollectionClient) -> None:
    todos.insert({"_id": "a", "n": 0})
    options = {"throttle_ms": 60_000}
    answer = subscribe(client, "slow", collection=todos.name, options=options)
    brief = subscribe(client, "s", collection=todos.name, options={"throttle_ms": 500})
    for n in range(1, 5):
        todos.caller.patch(f"{todos.path}/documents/a", {"$set": {"n": n}})
    brief.until_shows([{"_id": "a", "n": 4}])
    member = Member(todos)
    # Its first event is sent at once, and the others are throttled.
    assert answer.until("event")["version"] == 2
    assert stages(member.verdict("slow", "a", "held"))["delivery"] == "waiting"
    last = brief.events[-1]
    trace = member.verdict("s", "a", "coalesced" if last["version"] > 2 else "told")
    assert step(trace, "delivery")["facts"]["last_event"] == last["seq"]


def test_events_that_the_subscription_did_not_request_are_muted(
    client: Client, todos: CollectionClient
) -> None:
    todos.insert({"_id": "a", "n": 0})
    subscribe(client, "s", collection=todos.name, options={"events": ["add"]})
    todos.caller.patch(f"{todos.path}/documents/a", {"$set": {"n": 1}})
    assert Member(todos).verdict("s", "a", "muted")


def test_an_unwritten_document_and_a_future_version_are_explained(
    client: Client, todos: CollectionClient
) -> None:
    todos.insert({"_id": "a"})
    subscribe(client, "s", collection=todos.name)
    member = Member(todos)
    assert member.verdict("s", "never", "no_document")["version"] is None
    assert member.verdict("s", "a", "no_such_version", 7)["newest_version"] == 1


def test_a_client_that_does_not_read_is_named_as_the_cause_of_a_delay(
    server: str, client: Client, todos: CollectionClient
) -> None:
    with greeted(server, key_of(todos), by_socket=True) as sleeper:
        slow = subscribe(sleeper, "slow", collection=todos.name)
        member, version = Member(todos), 0
        # A few of them fill the buffers between the server and the client.
        document = {"text": secrets.token_urlsafe(400_000)}
        operations = [{"replace": {"id": "a", "document": document}}] * 5
        verdict = ""
        while verdict not in ("not_taken", "held"):
            bulk = todos.caller.post(f"{todos.path}/documents:bulk", {"operations": operations})
            version = bulk.json()["results"][-1]["version"]
            assert version < 1_000, "the client never falls behind"
            verdict = member.until_known("slow", "a", version)["verdict"]
        while not slow.items or slow.items[0]["version"] < version:
            slow.next()
        trace = member.until_known("slow", "a", version)
        while trace["verdict"] in ("not_taken", "held"):
            trace = member.until_known("slow", "a", version)
        assert trace["verdict"] in ("told", "coalesced")


def test_a_trace_can_be_requested_from_any_server(
    todos: CollectionClient,
) -> None:
    with another_server() as other, greeted(other.url, key_of(todos)) as client:
        answer = subscribe(client, "far", collection=todos.name)
        todos.insert({"_id": "a"})
        answer.until_shows([{"_id": "a"}])
        assert Member(todos).verdict("far", "a", "told")
        public = Member(todos).subscription("far")
        # It is killed, and no other process knows what it had sent.
        other.process.kill()
        other.process.wait()
        refusal = Member(todos).caller.get(f"{Member(todos).path}/{public}/why?document=a")
        assert (refusal.status_code, refusal.json()["code"]) in (
            (503, "unavailable"),
            (404, "not_found"),
        )


def test_the_command_line_lists_subscriptions_and_explains_deliveries(
    client: Client, todos: CollectionClient
) -> None:
    subscribe(client, "s", collection=todos.name, filter={"n": {"$gt": 3}})
    todos.insert({"_id": "a", "n": 2})
    member = Member(todos)
    public = member.subscription("s")
    member.verdict("s", "a", "no_match")
    assert public in ran(todos)
    answer = ran(todos, public, "a", "--version", "1")
    words = " ".join(answer.split())
    assert "✓ Written" in words
    assert "✗ The query's filter" in words
    assert "`n` is 2; expected: greater than 3." in words
    assert json.loads(ran(todos, public, "a", "--json"))["verdict"] == "no_match"
    refusal = run(todos, "no.such", "a")
    assert refusal.returncode == 1
    assert "not_found" in refusal.stderr


def run(todos: CollectionClient, *arguments: str) -> subprocess.CompletedProcess[str]:
    account = todos.account
    where = {"RILLBASE_URL": todos.caller.base, "RILLBASE_TENANT": account.slug}
    environment = {**os.environ, **where, "RILLBASE_KEY": account.admin_key, "COLUMNS": "200"}
    command = [sys.executable, "manage.py", "why", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


def ran(todos: CollectionClient, *arguments: str) -> str:
    done = run(todos, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_only_members_who_may_read_the_documents_get_the_trace(
    client: Client, server: str, todos: CollectionClient
) -> None:
    subscribe(client, "s", collection=todos.name)
    todos.insert({"_id": "a", "secret": "s3cr3t"})
    member = Member(todos)
    public = member.subscription("s")
    path = f"{member.path}/{public}/why?document=a"
    # A key that may use another collection alone, and one without the right to read.
    keys = (
        make_key(todos.account.tenant, scopes=["admin", "documents:read"], collections=["others"]),
        make_key(todos.account.tenant, scopes=["admin"]),
    )
    for key in keys:
        refusal = type(member.caller)(server, {"Authorization": f"Bearer {key}"}).get(path)
        assert refusal.status_code == 403, refusal.text
        assert "s3cr3t" not in refusal.text
    stranger = make_collection(server)
    other = Member(stranger)
    answer = other.caller.get(f"{other.path}/{public}/why?document=a")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_events_of_a_user_are_explained_without_a_subscription(
    server: str, background: BackgroundProcesses
) -> None:
    rules = {"read": {"$or": [{"public": True}, {"owner": {"$auth": "sub"}}]}}
    ruled = make_collection(server, rules=rules)
    ruled.insert_many([{"_id": f"d{n}", "n": n, "owner": "ada"} for n in range(5)])
    member = Member(ruled)
    query = {"collection": ruled.name, "sort": [["n", 1]], "limit": 2}

    def verdict(document: str, **more: object) -> str:
        body = {**query, "document": document, **more}
        answer = member.caller.post(f"/api/v1/tenants/{ruled.account.slug}/why", body)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["verdict"])

    assert verdict("d0", claims={"sub": "ada"}) == "would_match"
    assert verdict("d0", claims={"sub": "grace"}) == "hidden"
    assert verdict("d0", claims=None) == "hidden"
    assert verdict("d0") == "would_match"
    assert verdict("d3") == "outside_window"
    assert verdict("d0", offset=1) == "outside_window"
    assert verdict("d0", filter={"n": {"$gt": 3}}) == "no_match"
    assert verdict("never") == "no_document"
    refusal = member.caller.post(
        f"/api/v1/tenants/{ruled.account.slug}/why",
        {**query, "document": "a", "filter": {"$no": 1}},
    )
    assert (refusal.status_code, refusal.json()["code"]) == (400, "unsupported_operator")


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("", "invalid_parameter"),
        ("?document=a&version=-1", "invalid_parameter"),
        ("?document=a&version=x", "invalid_parameter"),
        ("?document=~%7Bnonsense", "invalid_id"),
    ],
)
def test_invalid_requests_are_rejected(
    client: Client, todos: CollectionClient, query: str, code: str
) -> None:
    subscribe(client, "s", collection=todos.name)
    member = Member(todos)
    refusal = member.caller.get(f"{member.path}/{member.subscription('s')}/why{query}")
    assert (refusal.status_code, refusal.json()["code"]) == (400, code)
