"""Where a change stopped on its way to a client, as real processes know it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.documents.collection import MadeCollection, make_collection
from tests.make import make_key
from tests.own_server import another_server
from tests.realtime.client import Client, greeted, opened
from tests.realtime.live.answer import subscribe
from tests.realtime.live.conftest import ROOT, Backstage
from tests.realtime.live.member import Member, stages, step
from tests.realtime.live.test_bounds import DOCUMENT, key_of
from tests.realtime.live.test_rights import anonymous_key


def test_a_delivered_event_is_explained_with_its_number(
    client: Client, todos: MadeCollection
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


def test_a_document_that_does_not_match_names_the_predicate_and_the_value(
    client: Client, todos: MadeCollection
) -> None:
    wanted = {"done": False, "priority": {"$gt": 3}}
    subscribe(client, "s", collection=todos.name, filter=wanted)
    todos.insert({"_id": "a", "done": False, "priority": 2})
    trace = Member(todos).verdict("s", "a", "no_match")
    assert stages(trace)["filter"] == "stopped"
    found = step(trace, "filter")
    assert "`priority` is 2; expected: greater than 3." in found["detail"]
    (part,) = [one for one in found["facts"]["explanation"]["reason"]["parts"] if one["decides"]]
    assert (json.loads(part["clause"]), part["found"]) == ({"priority": {"$gt": 3}}, ["2"])


def test_a_document_that_leaves_was_told_with_the_predicate_that_no_longer_holds(
    client: Client, todos: MadeCollection
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


def test_a_rule_that_hides_a_document_is_told_apart_from_the_filter(
    server: str, backstage: Backstage
) -> None:
    ruled = make_collection(server, rules={"read": {"public": True}})
    with opened(server) as client:
        client.say(type="hello", key=anonymous_key(ruled))
        subscribe(client, "s", collection=ruled.name, filter={"n": {"$lt": 9}})
        ruled.insert({"_id": "a", "n": 1, "public": False})
        trace = Member(ruled).verdict("s", "a", "hidden")
        assert (stages(trace)["filter"], stages(trace)["rule"]) == ("passed", "stopped")
        assert "`public` is false" in step(trace, "rule")["detail"]
        ruled.insert({"_id": "b", "n": 10, "public": True})
        assert Member(ruled).verdict("s", "b", "no_match")


def test_a_row_outside_the_window_is_said_to_be_before_or_behind_it(
    client: Client, todos: MadeCollection
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


def test_documents_of_the_initial_answer_need_no_event(
    client: Client, todos: MadeCollection
) -> None:
    todos.insert({"_id": "a", "n": 1})
    subscribe(client, "s", collection=todos.name)
    trace = Member(todos).verdict("s", "a", "in_result")
    assert stages(trace)["hub"] == "stopped"


def test_throttled_changes_are_delivered_together(client: Client, todos: MadeCollection) -> None:
    todos.insert({"_id": "a", "n": 0})
    options = {"throttle_ms": 60_000}
    answer = subscribe(client, "slow", collection=todos.name, options=options)
    brief = subscribe(client, "s", collection=todos.name, options={"throttle_ms": 500})
    for n in range(1, 5):
        todos.caller.patch(f"{todos.path}/documents/a", {"$set": {"n": n}})
    brief.until_shows([{"_id": "a", "n": 4}])
    member = Member(todos)
    # Its first event goes at once, and the others wait for their time.
    assert answer.until("event")["version"] == 2
    assert stages(member.verdict("slow", "a", "held"))["delivery"] == "waiting"
    last = brief.events[-1]
    trace = member.verdict("s", "a", "coalesced" if last["version"] > 2 else "told")
    assert step(trace, "delivery")["facts"]["last_event"] == last["seq"]


def test_kinds_of_change_that_were_not_asked_for_are_muted(
    client: Client, todos: MadeCollection
) -> None:
    todos.insert({"_id": "a", "n": 0})
    subscribe(client, "s", collection=todos.name, options={"events": ["add"]})
    todos.caller.patch(f"{todos.path}/documents/a", {"$set": {"n": 1}})
    assert Member(todos).verdict("s", "a", "muted")


def test_a_document_that_nobody_wrote_and_a_version_to_come_are_told_as_such(
    client: Client, todos: MadeCollection
) -> None:
    todos.insert({"_id": "a"})
    subscribe(client, "s", collection=todos.name)
    member = Member(todos)
    assert member.verdict("s", "never", "no_document")["version"] is None
    assert member.verdict("s", "a", "no_such_version", 7)["newest_version"] == 1


def test_a_client_that_does_not_read_is_named_as_what_holds_it_up(
    server: str, client: Client, todos: MadeCollection
) -> None:
    with greeted(server, key_of(todos), by_socket=True) as sleeper:
        slow = subscribe(sleeper, "slow", collection=todos.name)
        member, version = Member(todos), 0
        operations = [{"replace": {"id": "a", "document": DOCUMENT}}] * 100
        verdict = ""
        while verdict not in ("not_taken", "held"):
            bulk = todos.caller.post(f"{todos.path}/documents:bulk", {"operations": operations})
            version = bulk.json()["results"][-1]["version"]
            assert version < 20_000, "the client never falls behind"
            verdict = member.settled("slow", "a", version)["verdict"]
        while not slow.items or slow.items[0]["version"] < version:
            slow.next()
        trace = member.settled("slow", "a", version)
        while trace["verdict"] in ("not_taken", "held"):
            trace = member.settled("slow", "a", version)
        assert trace["verdict"] in ("told", "coalesced")


def test_a_trace_can_be_requested_from_any_server(
    todos: MadeCollection,
) -> None:
    with another_server() as other, greeted(other.url, key_of(todos)) as client:
        answer = subscribe(client, "far", collection=todos.name)
        todos.insert({"_id": "a"})
        answer.until_shows([{"_id": "a"}])
        assert Member(todos).verdict("far", "a", "told")
        public = Member(todos).subscription("far")
        # It ends without a word, and nobody else knows what it told.
        other.process.kill()
        other.process.wait()
        refused = Member(todos).caller.get(f"{Member(todos).path}/{public}/why?document=a")
        assert (refused.status_code, refused.json()["code"]) in (
            (503, "unavailable"),
            (404, "not_found"),
        )


def test_the_command_line_lists_subscriptions_and_explains_deliveries(
    client: Client, todos: MadeCollection
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
    refused = run(todos, "no.such", "a")
    assert refused.returncode == 1
    assert "not_found" in refused.stderr


def run(todos: MadeCollection, *arguments: str) -> subprocess.CompletedProcess[str]:
    made = todos.made
    where = {"RILLBASE_URL": todos.caller.base, "RILLBASE_TENANT": made.slug}
    environment = {**os.environ, **where, "RILLBASE_KEY": made.admin_key, "COLUMNS": "200"}
    command = [sys.executable, "manage.py", "why", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


def ran(todos: MadeCollection, *arguments: str) -> str:
    done = run(todos, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_only_members_who_may_read_the_documents_get_the_trace(
    client: Client, server: str, todos: MadeCollection
) -> None:
    subscribe(client, "s", collection=todos.name)
    todos.insert({"_id": "a", "secret": "s3cr3t"})
    member = Member(todos)
    public = member.subscription("s")
    path = f"{member.path}/{public}/why?document=a"
    # A key that may use another collection alone, and one without the right to read.
    keys = (
        make_key(todos.made.tenant, scopes=["admin", "documents:read"], collections=["others"]),
        make_key(todos.made.tenant, scopes=["admin"]),
    )
    for key in keys:
        refused = type(member.caller)(server, {"Authorization": f"Bearer {key}"}).get(path)
        assert refused.status_code == 403, refused.text
        assert "s3cr3t" not in refused.text
    stranger = make_collection(server)
    other = Member(stranger)
    answer = other.caller.get(f"{other.path}/{public}/why?document=a")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_what_a_user_would_be_told_needs_no_subscription(server: str, backstage: Backstage) -> None:
    rules = {"read": {"$or": [{"public": True}, {"owner": {"$auth": "sub"}}]}}
    ruled = make_collection(server, rules=rules)
    ruled.insert_many([{"_id": f"d{n}", "n": n, "owner": "ada"} for n in range(5)])
    member = Member(ruled)
    query = {"collection": ruled.name, "sort": [["n", 1]], "limit": 2}

    def verdict(document: str, **more: object) -> str:
        body = {**query, "document": document, **more}
        answer = member.caller.post(f"/api/v1/tenants/{ruled.made.slug}/why", body)
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
    refused = member.caller.post(
        f"/api/v1/tenants/{ruled.made.slug}/why", {**query, "document": "a", "filter": {"$no": 1}}
    )
    assert (refused.status_code, refused.json()["code"]) == (400, "unsupported_operator")


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("", "invalid_parameter"),
        ("?document=a&version=-1", "invalid_parameter"),
        ("?document=a&version=x", "invalid_parameter"),
        ("?document=~%7Bnonsense", "invalid_id"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    client: Client, todos: MadeCollection, query: str, code: str
) -> None:
    subscribe(client, "s", collection=todos.name)
    member = Member(todos)
    refused = member.caller.get(f"{member.path}/{member.subscription('s')}/why{query}")
    assert (refused.status_code, refused.json()["code"]) == (400, code)
