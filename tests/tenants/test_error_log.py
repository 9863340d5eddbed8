"""What went wrong for a tenant, as its members see it, and nobody else."""

from __future__ import annotations

import datetime
import json
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from django.db import DatabaseError, connections
from django.utils import timezone

from foundation.scope import scoped
from foundation.tasks.context import TaskContext
from foundation.tasks.failures import TaskFailure, bury
from tenants import error_log
from tenants.models import ErrorEntry
from tenants.roles import Role
from tenants.sweeps import retention
from tests.caller import Caller, problem, signed_in, with_key
from tests.make import MadeTenant, make_key, make_member, make_tenant
from tests.tenants.webhooks.hooks import make_webhook

if TYPE_CHECKING:
    from tests.tenants.webhooks.receivers import WebhookReceiver

SECRET = "rbk_dev_abcdefghijklmnop.qrstuvwxyz0123456789"


def entries(caller: Caller, made: MadeTenant, **filters: str) -> list[dict[str, Any]]:
    error_log.flush()
    query = "&".join(f"{name}={value}" for name, value in filters.items())
    answer = caller.get(f"/api/v1/tenants/{made.slug}/errors?{query}")
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


def refused(made: MadeTenant, code: str = "forbidden", place: str = "GET /x") -> None:
    error_log.note(made.tenant.id, error_log.Area.REQUEST, code, place=place, status=403)


def kept(made: MadeTenant) -> list[ErrorEntry]:
    error_log.flush()
    rows = ErrorEntry.unscoped.using("relay").filter(tenant_id=made.tenant.id)
    return list(rows.order_by("pk"))


def test_a_refused_call_of_either_plane_is_found_by_its_request_id(server: str) -> None:
    made = make_tenant()
    key = with_key(server, make_key(made.tenant, scopes=["documents:read"]))
    owner = signed_in(server, made.owner)
    body = problem(
        key.post("/v1/collections/todos/query", {"filter": {"$no": 1}}), 400, "unsupported_operator"
    )
    owner.post(f"/api/v1/tenants/{made.slug}/webhooks", {"name": "x", "url": 5})

    (one,) = entries(owner, made, request_id=body["request_id"])
    assert (one["area"], one["code"], one["status"]) == ("request", "unsupported_operator", 400)
    assert one["place"] == "POST /v1/collections/todos/query"
    assert one["actor"].startswith("api_key:")
    (other,) = entries(owner, made, code="invalid_body")
    assert other["place"] == f"POST /api/v1/tenants/{made.slug}/webhooks"
    assert other["detail"] == "/events: This field is required."


def test_equal_errors_of_a_minute_are_one_entry_with_a_count() -> None:
    made = make_tenant()
    for _ in range(3):
        refused(made)
        error_log.flush()
    refused(made, code="rate_limited")
    found = {entry.code: entry.count for entry in kept(made)}
    assert sum(entry.count for entry in kept(made)) == 4
    # The minute may have turned in between: then there are two entries, of three errors.
    assert found["rate_limited"] == 1
    assert len(kept(made)) <= 3


def test_more_kinds_of_errors_than_are_told_apart_are_counted() -> None:
    made = make_tenant()
    # A log of its own, which nothing writes down in between.
    log = error_log.ErrorLog(interval_s=3600)
    for number in range(error_log.MAX_KINDS + 7):
        log.note(made.tenant.id, error_log.Area.REQUEST, "forbidden", place=f"GET /{number}")
    log.flush()
    found = {entry.code: entry for entry in kept(made)}
    assert found["more_errors"].count == 7
    assert len(kept(made)) == error_log.MAX_KINDS + 1


def test_errors_that_could_not_be_written_are_written_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = make_tenant()
    log = error_log.ErrorLog(interval_s=3600)

    def away(*_: object) -> None:
        raise DatabaseError("away")

    log.note(made.tenant.id, error_log.Area.REQUEST, "forbidden", place="GET /x")
    with monkeypatch.context() as broken:
        broken.setattr(connections["relay"], "cursor", away)
        assert log.flush() == 0
    log.note(made.tenant.id, error_log.Area.REQUEST, "forbidden", place="GET /x")
    log.flush()
    assert sum(entry.count for entry in kept(made)) == 2


def test_credentials_do_not_come_into_the_log() -> None:
    made = make_tenant()
    detail = f"The header `Authorization: Bearer {SECRET}` is wrong, so is {SECRET}\0."
    error_log.note(
        made.tenant.id, error_log.Area.REQUEST, "x", place=f"GET /{SECRET}", detail=detail
    )
    (entry,) = kept(made)
    assert "qrstuv" not in json.dumps([entry.place, entry.detail])
    assert "wrong" in entry.detail


def test_only_members_read_the_error_log(server: str) -> None:
    made, other = make_tenant(), make_tenant()
    refused(made, place="GET /mine")
    viewer = signed_in(server, make_member(made.tenant, Role.VIEWER))
    assert [entry["place"] for entry in entries(viewer, made)] == ["GET /mine"]
    stranger = signed_in(server, other.owner)
    problem(stranger.get(f"/api/v1/tenants/{made.slug}/errors"), 404, "not_found")
    data_key = with_key(server, make_key(made.tenant))
    assert data_key.get(f"/api/v1/tenants/{made.slug}/errors").status_code == 403
    # What a stranger is refused stands in no log of the tenant that he asked for.
    assert [entry.place for entry in kept(made) if "errors" in entry.place] == [
        f"GET /api/v1/tenants/{made.slug}/errors"
    ]
    with scoped(tenant_id=other.tenant.id):
        assert not ErrorEntry.objects.filter(place="GET /mine").exists()


def test_the_log_is_filtered_and_paged(server: str) -> None:
    made = make_tenant()
    owner = signed_in(server, made.owner)
    for number in range(3):
        refused(made, place=f"GET /{number}")
    error_log.note(made.tenant.id, error_log.Area.AGGREGATE, "view_failed", place="orders")
    assert [e["code"] for e in entries(owner, made, area="aggregate")] == ["view_failed"]
    assert len(entries(owner, made, code="forbidden", limit="2")) == 2
    problem(owner.get(f"/api/v1/tenants/{made.slug}/errors?area=weather"), 400, "invalid_parameter")


def test_a_failed_delivery_and_the_end_of_its_webhook_are_recorded(
    receiver: WebhookReceiver,
) -> None:
    hook = make_webhook(receiver.url)
    receiver.answer(500, b"sorry")
    hook.announce("api_key.created")
    hook.work()
    (failed,) = kept(hook.made)
    assert (failed.area, failed.code) == ("webhook", "webhook_delivery_failed")
    assert failed.place == "Hook (api_key.created)"
    assert "500" in failed.detail
    hook.let_pass(datetime.timedelta(days=1))
    receiver.answer(410, b"")
    hook.work()
    assert "webhook_disabled" in {entry.code for entry in kept(hook.made)}


def test_a_dead_letter_is_recorded_without_its_message() -> None:
    made = make_tenant()
    context = TaskContext(made.tenant.id, "request-1", 9)
    bury(TaskFailure(str(uuid4()), "documents.backfill", {}, context, "password=hunter2"))
    (entry,) = kept(made)
    assert (entry.area, entry.code, entry.place) == ("task", "task_failed", "documents.backfill")
    assert "hunter2" not in entry.detail


def test_an_error_of_graphql_is_recorded_once(server: str) -> None:
    made = make_tenant()
    owner = signed_in(server, made.owner)
    owner.headers["Rillbase-Tenant"] = made.slug
    query = f'{{ tenant(slug: "{made.slug}") {{ webhooks(first: 5000) {{ nodes {{ id }} }} }} }}'
    assert "errors" in owner.post("/graphql", {"query": query}).json()
    owner.post("/graphql", {"query": "{ nothing }"})
    found = entries(owner, made)
    assert {entry["place"] for entry in found} == {"GraphQL"}
    assert sum(entry["count"] for entry in found) == 2


def test_old_entries_are_removed_and_beyond_the_limit_the_oldest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = make_tenant()
    for number in range(5):
        refused(made, place=f"GET /{number}")
    error_log.flush()
    rows = ErrorEntry.unscoped.using("relay").filter(tenant_id=made.tenant.id)
    rows.filter(place="GET /4").update(last_at=timezone.now() - datetime.timedelta(days=30))
    monkeypatch.setattr(retention, "MAX_ERRORS", 3)
    oldest = kept(made)[0].place
    retention.delete_errors()
    left = {entry.place for entry in kept(made)}
    assert len(left) == 3
    assert "GET /4" not in left
    assert oldest not in left or oldest == "GET /4"
