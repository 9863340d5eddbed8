"""Saved queries: shared by the members of a tenant, limited in number, and ordered on the
overview.
"""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tenants.actions.saved_queries import MAX_PINS
from tenants.models import Quota
from tenants.roles import Role
from tests.caller import Caller, problem, signed_in, with_key
from tests.make import TenantAccount, make_member, make_tenant

QUERY = {"filter": {"b": 1, "a": {"z": 1, "y": 2}}, "sort": [["rank", -1]], "limit": 20}


def path_of(account: TenantAccount) -> str:
    return f"/api/v1/tenants/{account.slug}/saved-queries"


def save(
    caller: Caller, account: TenantAccount, name: str = "Open", **fields: object
) -> dict[str, Any]:
    body = {"name": name, "kind": "collection", "source": "todos", "query": QUERY, **fields}
    answer = caller.post(path_of(account), body)
    assert answer.status_code == 201, answer.text
    content: dict[str, Any] = answer.json()
    return content


def pinned(caller: Caller, account: TenantAccount) -> list[str]:
    items = caller.get(f"{path_of(account)}?pinned=true").json()["items"]
    return [item["name"] for item in sorted(items, key=lambda item: item["pin"])]


def test_a_query_is_saved_changed_and_deleted(server: str) -> None:
    account = make_tenant()
    caller = with_key(server, account.admin_key)
    chart = {"type": "bar", "x": "owner", "y": "n", "series": None}
    saved = save(caller, account, chart=chart)
    path = f"{path_of(account)}/{saved['id']}"
    read = caller.get(path)
    assert read.json() == saved
    assert saved["chart"] == chart
    assert saved["pin"] is None
    changed = caller.patch(path, {"name": "Mine", "chart": None}, If_Match=read.headers["ETag"])
    assert (changed.json()["name"], changed.json()["chart"]) == ("Mine", None)
    problem(
        caller.patch(path, {"name": "x"}, If_Match=read.headers["ETag"]), 412, "precondition_failed"
    )
    assert caller.delete(path).status_code == 204
    assert caller.get(path_of(account)).json()["items"] == []


def test_the_order_of_members_in_a_filter_is_kept(server: str) -> None:
    account = make_tenant()
    saved = save(with_key(server, account.admin_key), account)
    assert list(saved["query"]["filter"]) == ["b", "a"]
    assert list(saved["query"]["filter"]["a"]) == ["z", "y"]


def test_viewers_read_and_developers_write(server: str) -> None:
    account = make_tenant()
    developer = signed_in(server, make_member(account.tenant, Role.DEVELOPER))
    viewer = signed_in(server, make_member(account.tenant, Role.VIEWER))
    saved = save(developer, account)
    path = f"{path_of(account)}/{saved['id']}"
    assert viewer.get(path).json()["name"] == "Open"
    problem(viewer.post(path_of(account), {}), 403, "forbidden")
    problem(viewer.patch(path, {"pin": 0}), 403, "forbidden")
    problem(viewer.delete(path), 403, "forbidden")


def test_changes_are_in_the_audit_log(server: str) -> None:
    account = make_tenant()
    caller = with_key(server, account.admin_key)
    saved = save(caller, account)
    caller.patch(f"{path_of(account)}/{saved['id']}", {"pin": 0})
    caller.delete(f"{path_of(account)}/{saved['id']}")
    entries = caller.get(f"/api/v1/tenants/{account.slug}/audit-log").json()["items"]
    about = [entry["action"] for entry in entries if entry["target_type"] == "saved_query"]
    assert about == ["saved_query.deleted", "saved_query.updated", "saved_query.created"]


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"name": ""}, "/name"),
        ({"name": "two\nlines"}, "/name"),
        ({"kind": "topic"}, "/kind"),
        ({"source": "../x"}, "/source"),
        ({"query": []}, "/query"),
        ({"query": {"filter": {"a": "x" * 17_000}}}, "/query"),
        ({"chart": {"type": "pie"}}, "/chart/type"),
        ({"chart": {"x": "a"}}, "/chart/type"),
        ({"chart": {"type": "bar", "colour": "red"}}, "/chart/colour"),
        ({"pin": -1}, "/pin"),
        ({"owner": "me"}, "/owner"),
    ],
)
def test_a_wrong_member_is_named(server: str, fields: dict[str, object], pointer: str) -> None:
    account = make_tenant()
    body = {"name": "n", "kind": "collection", "source": "todos", "query": {}, **fields}
    answer = with_key(server, account.admin_key).post(path_of(account), body)
    errors = problem(answer, 400, "invalid_body")["errors"]
    assert [error["pointer"] for error in errors] == [pointer]


def test_a_change_of_the_chart_needs_its_type(server: str) -> None:
    account = make_tenant()
    caller = with_key(server, account.admin_key)
    saved = save(caller, account)
    answer = caller.patch(f"{path_of(account)}/{saved['id']}", {"chart": {"x": "a"}})
    assert problem(answer, 400, "invalid_body")["errors"][0]["pointer"] == "/chart/type"


def test_names_are_unique_in_a_tenant(server: str) -> None:
    account, other = make_tenant(), make_tenant()
    caller = with_key(server, account.admin_key)
    save(caller, account, "Open")
    second = save(caller, account, "Closed")
    body = {"name": "Open", "kind": "dataset", "source": "x", "query": {}}
    problem(caller.post(path_of(account), body), 409, "name_taken")
    problem(caller.patch(f"{path_of(account)}/{second['id']}", {"name": "Open"}), 409, "name_taken")
    save(with_key(server, other.admin_key), other, "Open")


def test_a_quota_limits_their_number(server: str) -> None:
    account = make_tenant()
    Quota(tenant=account.tenant, limits={"saved_queries": 1}).save(using="staff")
    caller = with_key(server, account.admin_key)
    save(caller, account)
    body = {"name": "another", "kind": "collection", "source": "todos", "query": {}}
    problem(caller.post(path_of(account), body), 403, "quota_exceeded")


def test_pins_have_an_order_that_can_be_changed(server: str) -> None:
    account = make_tenant()
    caller = with_key(server, account.admin_key)
    ids = {name: save(caller, account, name, pin=11)["id"] for name in ("a", "b", "c", "d")}
    assert pinned(caller, account) == ["a", "b", "c", "d"]

    def pin(name: str, place: int | None) -> None:
        answer = caller.patch(f"{path_of(account)}/{ids[name]}", {"pin": place})
        assert answer.status_code == 200, answer.text

    pin("d", 1)
    assert pinned(caller, account) == ["a", "d", "b", "c"]
    pin("a", 2)
    assert pinned(caller, account) == ["d", "b", "a", "c"]
    pin("b", None)
    assert pinned(caller, account) == ["d", "a", "c"]
    caller.delete(f"{path_of(account)}/{ids['a']}")
    pin("b", 0)
    assert pinned(caller, account) == ["b", "d", "c"]


def test_pins_are_limited(server: str) -> None:
    account = make_tenant()
    caller = with_key(server, account.admin_key)
    for number in range(MAX_PINS):
        save(caller, account, f"q{number}", pin=0)
    last = save(caller, account, "last")
    answer = caller.patch(f"{path_of(account)}/{last['id']}", {"pin": 0})
    problem(answer, 403, "quota_exceeded")
    assert len(pinned(caller, account)) == MAX_PINS


def test_two_members_who_pin_at_once_both_succeed(server: str) -> None:
    account = make_tenant()
    caller = with_key(server, account.admin_key)
    ids = [save(caller, account, f"q{number}")["id"] for number in range(6)]
    statuses: list[int] = []

    def pin(saved: str) -> None:
        for place in (0, 3, 0):
            answer = caller.patch(f"{path_of(account)}/{saved}", {"pin": place})
            statuses.append(answer.status_code)

    threads = [threading.Thread(target=pin, args=(saved,)) for saved in ids]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [200] * 18
    items = caller.get(f"{path_of(account)}?pinned=true").json()["items"]
    assert sorted(item["pin"] for item in items) == list(range(6))
