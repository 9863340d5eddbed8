"""A tenant's errors, which only its members see."""

from __future__ import annotations

import datetime
import json
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from django.db import DatabaseError, connections
from django.utils import timezone

from foundation.scope import scoped
from foundation.tasks.context import TaskContext
from foundation.tasks.failures import TaskFailure, keep_dead_letter
from tenants import error_log
from tenants.models import ErrorEntry
from tenants.roles import Role
from tenants.sweeps import retention
from tests.caller import Caller, problem, signed_in, with_key
from tests.make import TenantAccount, make_key, make_member, make_tenant
from tests.tenants.webhooks.hooks import make_webhook

if TYPE_CHECKING:
    from tests.tenants.webhooks.receivers import WebhookReceiver

SECRET = "rbk_dev_abcdefghijklmnop.qrstuvwxyz0123456789"


def entries(caller: Caller, account: TenantAccount, **filters: str) -> list[dict[str, Any]]:
    error_log.flush()
    query = "&".join(f"{name}={value}" for name, value in filters.items())
    answer = caller.get(f"/api/v1/tenants/{account.slug}/errors?{query}")
    assert answer.status_code == 200, answer.text
    result: list[dict[str, Any]] = answer.json()["items"]
    return result


def note_refusal(account: TenantAccount, code: str = "forbidden", place: str = "GET /x") -> None:
    error_log.note(account.tenant.id, error_log.Area.REQUEST, code, place=place, status=403)


def stored_entries(account: TenantAccount) -> list[ErrorEntry]:
    error_log.flush()
    rows = ErrorEntry.unscoped.using("relay").filter(tenant_id=account.tenant.id)
    return list(rows.order_by("pk"))


def test_a_refused_call_of_either_plane_is_found_by_its_request_id(server: str) -> None:
    account = make_tenant()
    key = with_key(server, make_key(account.tenant, scopes=["documents:read"]))
    owner = signed_in(server, account.owner)
    body = problem(
        key.post("/v1/collections/todos/query", {"filter": {"$no": 1}}), 400, "unsupported_operator"
    )
    owner.post(f"/api/v1/tenants/{account.slug}/webhooks", {"name": "x", "url": 5})

    (one,) = entries(owner, account, request_id=body["request_id"])
    assert (one["area"], one["code"], one["status"]) == ("request", "unsupported_operator", 400)
    assert one["place"] == "POST /v1/collections/todos/query"
    assert one["actor"].startswith("api_key:")
    (other,) = entries(owner, account, code="invalid_body")
    assert other["place"] == f"POST /api/v1/tenants/{account.slug}/webhooks"
    assert other["detail"] == "/events: This field is required."


def test_equal_errors_of_a_minute_are_one_entry_with_a_count() -> None:
    account = make_tenant()
    for _ in range(3):
        note_refusal(account)
        error_log.flush()
    note_refusal(account, code="rate_limited")
    result = {entry.code: entry.count for entry in stored_entries(account)}
    assert sum(entry.count for entry in stored_entries(account)) == 4
    # A new minute may have begun in between: then there are two entries, of three errors.
    assert result["rate_limited"] == 1
    assert len(stored_entries(account)) <= 3


def test_errors_beyond_the_maximum_number_of_kinds_are_counted_together() -> None:
    account = make_tenant()
    # A separate log, which nothing flushes in between.
    log = error_log.ErrorLog(interval_s=3600)
    for number in range(error_log.MAX_KINDS + 7):
        log.note(account.tenant.id, error_log.Area.REQUEST, "forbidden", place=f"GET /{number}")
    log.flush()
    result = {entry.code: entry for entry in stored_entries(account)}
    assert result["more_errors"].count == 7
    assert len(stored_entries(account)) == error_log.MAX_KINDS + 1


def test_errors_that_could_not_be_written_are_written_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    account = make_tenant()
    log = error_log.ErrorLog(interval_s=3600)

    def raise_unavailable(*_: object) -> None:
        raise DatabaseError("away")

    log.note(account.tenant.id, error_log.Area.REQUEST, "forbidden", place="GET /x")
    with monkeypatch.context() as broken:
        broken.setattr(connections["relay"], "cursor", raise_unavailable)
        assert log.flush() == 0
    log.note(account.tenant.id, error_log.Area.REQUEST, "forbidden", place="GET /x")
    log.flush()
    assert sum(entry.count for entry in stored_entries(account)) == 2


def test_a_flush_waits_for_what_another_one_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    log, account = error_log.ErrorLog(), make_tenant()
    begun, may_write, row = threading.Event(), threading.Event(), error_log._row

    def slow_row(*arguments: Any) -> error_log.Row:
        begun.set()
        assert may_write.wait(60)
        return row(*arguments)

    monkeypatch.setattr(error_log, "_row", slow_row)
    log.note(account.tenant.id, error_log.Area.REQUEST, "forbidden", place="GET /x", status=403)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(log.flush)
        assert begun.wait(60)
        second = threads.submit(log.flush)
        assert not wait([second], timeout=0.2).done
        may_write.set()
        assert (first.result(60), second.result(60)) == (1, 0)
    log.stop()


def test_credentials_are_not_logged() -> None:
    account = make_tenant()
    detail = f"The header `Authorization: Bearer {SECRET}` is wrong, so is {SECRET}\0."
    error_log.note(
        account.tenant.id, error_log.Area.REQUEST, "x", place=f"GET /{SECRET}", detail=detail
    )
    (entry,) = stored_entries(account)
    assert "qrstuv" not in json.dumps([entry.place, entry.detail])
    assert "wrong" in entry.detail


def test_only_members_read_the_error_log(server: str) -> None:
    account, other = make_tenant(), make_tenant()
    note_refusal(account, place="GET /mine")
    viewer = signed_in(server, make_member(account.tenant, Role.VIEWER))
    assert [entry["place"] for entry in entries(viewer, account)] == ["GET /mine"]
    stranger = signed_in(server, other.owner)
    problem(stranger.get(f"/api/v1/tenants/{account.slug}/errors"), 404, "not_found")
    data_key = with_key(server, make_key(account.tenant))
    assert data_key.get(f"/api/v1/tenants/{account.slug}/errors").status_code == 403
    # Rejected calls of strangers are not in the log of the tenant that they named.
    assert [entry.place for entry in stored_entries(account) if "errors" in entry.place] == [
        f"GET /api/v1/tenants/{account.slug}/errors"
    ]
    with scoped(tenant_id=other.tenant.id):
        assert not ErrorEntry.objects.filter(place="GET /mine").exists()


def test_the_log_is_filtered_and_paged(server: str) -> None:
    account = make_tenant()
    owner = signed_in(server, account.owner)
    for number in range(3):
        note_refusal(account, place=f"GET /{number}")
    error_log.note(account.tenant.id, error_log.Area.AGGREGATE, "view_failed", place="orders")
    assert [e["code"] for e in entries(owner, account, area="aggregate")] == ["view_failed"]
    assert len(entries(owner, account, code="forbidden", limit="2")) == 2
    problem(
        owner.get(f"/api/v1/tenants/{account.slug}/errors?area=weather"), 400, "invalid_parameter"
    )


def test_a_failed_delivery_and_the_end_of_its_webhook_are_recorded(
    receiver: WebhookReceiver,
) -> None:
    hook = make_webhook(receiver.url)
    receiver.answer(500, b"sorry")
    hook.announce("api_key.created")
    hook.work()
    (failed,) = stored_entries(hook.account)
    assert (failed.area, failed.code) == ("webhook", "webhook_delivery_failed")
    assert failed.place == "Hook (api_key.created)"
    assert "500" in failed.detail
    hook.let_pass(datetime.timedelta(days=1))
    receiver.answer(410, b"")
    hook.work()
    assert "webhook_disabled" in {entry.code for entry in stored_entries(hook.account)}


def test_a_dead_letter_is_recorded_without_its_message() -> None:
    account = make_tenant()
    context = TaskContext(account.tenant.id, "request-1", 9)
    keep_dead_letter(
        TaskFailure(str(uuid4()), "documents.backfill", {}, context, "password=hunter2")
    )
    (entry,) = stored_entries(account)
    assert (entry.area, entry.code, entry.place) == ("task", "task_failed", "documents.backfill")
    assert "hunter2" not in entry.detail


def test_an_error_of_graphql_is_recorded_once(server: str) -> None:
    account = make_tenant()
    owner = signed_in(server, account.owner)
    owner.headers["Rillbase-Tenant"] = account.slug
    query = f'{{ tenant(slug: "{account.slug}") {{ webhooks(first: 5000) {{ nodes {{ id }} }} }} }}'
    assert "errors" in owner.post("/graphql", {"query": query}).json()
    owner.post("/graphql", {"query": "{ nothing }"})
    result = entries(owner, account)
    assert {entry["place"] for entry in result} == {"GraphQL"}
    assert sum(entry["count"] for entry in result) == 2


def test_old_entries_are_removed_and_beyond_the_limit_the_oldest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    account = make_tenant()
    for number in range(5):
        note_refusal(account, place=f"GET /{number}")
    error_log.flush()
    rows = ErrorEntry.unscoped.using("relay").filter(tenant_id=account.tenant.id)
    rows.filter(place="GET /4").update(last_at=timezone.now() - datetime.timedelta(days=30))
    monkeypatch.setattr(retention, "MAX_ERRORS", 3)
    oldest = stored_entries(account)[0].place
    retention.delete_errors()
    left = {entry.place for entry in stored_entries(account)}
    assert len(left) == 3
    assert "GET /4" not in left
    assert oldest not in left or oldest == "GET /4"
