"""The overview of a tenant."""

from __future__ import annotations

import datetime
from typing import Any

from django.db import connections
from django.utils import timezone

from connections.open_connections import add_up
from connections.quotas import ConnectionUsage
from documents.collections import document_counts
from foundation.valkey_wire import Reply
from tenants import error_log
from tenants.models import UsageMinute
from tenants.sweeps import usage_roll_up
from tenants.sweeps.retention import delete_usage_minutes
from tests.caller import with_key
from tests.documents.collection import make_collection
from tests.documents.collections import stored_documents
from tests.make import TenantAccount, make_tenant
from tests.waiting import wait_until


def overview(server: str, account: TenantAccount) -> dict[str, Any]:
    answer = with_key(server, account.admin_key).get(f"/api/v1/tenants/{account.slug}/overview")
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def test_a_new_tenant_has_nothing(server: str) -> None:
    result = overview(server, make_tenant())
    assert result["collections"] == {"total": 0, "items": []}
    assert (result["connections"], result["subscriptions"]) == (0, 0)
    assert result["activity"] == []
    assert result["errors"] == {"count": 0, "codes": []}


def test_documents_are_counted_without_deleted_ones(server: str) -> None:
    notes = make_collection(server, name="notes")
    make_collection(server, account=notes.account, name="empty")
    notes.insert_many([{"_id": str(n)} for n in range(4)])
    notes.caller.delete(f"{notes.path}/documents/0")
    assert overview(server, notes.account)["collections"] == {
        "total": 2,
        "items": [
            {"name": "empty", "documents": 0, "is_estimate": False},
            {"name": "notes", "documents": 3, "is_estimate": False},
        ],
    }


def test_a_large_collection_has_an_estimate(server: str) -> None:
    account = make_tenant()
    many = document_counts.EXACT_UP_TO + 1_000
    make_collection(server, account=account, name="large")
    stored_documents.put(account.tenant.id, "large", [{"_id": n} for n in range(many)])
    with connections["owner"].cursor() as cursor:
        cursor.execute("ANALYZE documents_document")
    (large,) = overview(server, account)["collections"]["items"]
    assert large["is_estimate"]
    assert 0.5 * many < large["documents"] < 2 * many


def test_writes_appear_within_seconds(server: str) -> None:
    notes = make_collection(server)
    notes.insert_many([{"_id": str(n)} for n in range(5)])
    notes.caller.delete(f"{notes.path}/documents/0")
    other = make_tenant()

    def is_counted() -> bool:
        usage_roll_up.sweep()
        minutes = overview(server, notes.account)["activity"]
        return sum(int(minute["writes"]) for minute in minutes) == 6

    wait_until(is_counted, what="the writes")
    assert overview(server, other)["activity"] == []


def test_minutes_are_forgotten_after_two_hours() -> None:
    account = make_tenant()
    now = timezone.now().replace(second=0, microsecond=0)
    for hours in (0, 1, 3):
        UsageMinute.unscoped.using("relay").create(
            tenant_id=account.tenant.id, minute=now - datetime.timedelta(hours=hours), writes=1
        )
    delete_usage_minutes()
    kept = UsageMinute.unscoped.using("relay").filter(tenant_id=account.tenant.id)
    assert sorted(now - row.minute for row in kept) == [
        datetime.timedelta(0),
        datetime.timedelta(hours=1),
    ]


def test_errors_of_a_day_are_added_up_by_code(server: str) -> None:
    account, other = make_tenant(), make_tenant()
    for code, times in (("invalid_filter", 3), ("not_found", 1)):
        for _ in range(times):
            error_log.note(account.tenant.id, error_log.Area.REQUEST, code, place="GET /")
    error_log.flush()
    assert overview(server, account)["errors"] == {
        "count": 4,
        "codes": [{"code": "invalid_filter", "count": 3}, {"code": "not_found", "count": 1}],
    }
    assert overview(server, other)["errors"]["count"] == 0


def test_reports_of_dead_processes_do_not_count() -> None:
    reports: Reply = [b"a", b"2 30 2000", b"b", b"1 5 3000", b"c", b"7 7 999"]
    assert add_up(reports, 2000) == ConnectionUsage(3, 35)
    assert add_up(reports, 2001) == ConnectionUsage(1, 5)
