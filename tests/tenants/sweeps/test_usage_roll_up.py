"""Usage is added up exactly once, however many processes do it concurrently."""

from __future__ import annotations

import datetime
import threading
from uuid import UUID, uuid4

from django.db import connections

from tenants.models import UsageHour, UsageMinute, UsageSample
from tenants.sweeps import usage_roll_up
from tenants.sweeps.usage_roll_up import roll_up
from tests.make import TenantAccount, make_tenant

NOON = datetime.datetime(2026, 11, 21, 12, 0, tzinfo=datetime.UTC)
MINUTE = datetime.timedelta(minutes=1)


def _sample(tenant_id: UUID, at: datetime.datetime, **amounts: int) -> None:
    UsageSample.objects.using("relay").create(tenant_id=tenant_id, at=at, amounts=amounts)


def _hours(account: TenantAccount) -> dict[tuple[int, str], int]:
    rows = UsageHour.unscoped.using("relay").filter(tenant_id=account.tenant.id)
    return {(row.hour.hour, row.metric): row.amount for row in rows}


def test_samples_become_sums_by_hour_and_metric_and_go() -> None:
    account = make_tenant()
    _sample(account.tenant.id, NOON, reads=3, writes=1)
    _sample(account.tenant.id, NOON + 59 * MINUTE, reads=4)
    _sample(account.tenant.id, NOON + 60 * MINUTE, reads=5)
    usage_roll_up.sweep()
    assert _hours(account) == {(12, "reads"): 7, (12, "writes"): 1, (13, "reads"): 5}
    assert not UsageSample.objects.using("relay").filter(tenant_id=account.tenant.id).exists()


def test_later_samples_of_an_hour_are_added_to_it() -> None:
    account = make_tenant()
    for amount in (1, 10, 100):
        _sample(account.tenant.id, NOON, reads=amount)
        usage_roll_up.sweep()
        usage_roll_up.sweep()
    assert _hours(account) == {(12, "reads"): 111}


def test_many_roll_ups_at_once_count_each_sample_once() -> None:
    several = [make_tenant() for _ in range(3)]
    for account in several:
        for minute in range(100):
            _sample(account.tenant.id, NOON + minute * MINUTE, reads=1, writes=2)
    start = threading.Barrier(4)
    errors: list[Exception] = []

    def work() -> None:
        start.wait()
        try:
            while roll_up(7):
                pass
        except Exception as error:  # noqa: BLE001 -- shown by the main thread
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    for account in several:
        assert _hours(account) == {
            (12, "reads"): 60,
            (12, "writes"): 120,
            (13, "reads"): 40,
            (13, "writes"): 80,
        }


def test_samples_of_a_removed_tenant_are_dropped() -> None:
    gone, account = uuid4(), make_tenant()
    _sample(gone, NOON, reads=1)
    _sample(account.tenant.id, NOON, reads=1)
    usage_roll_up.sweep()
    assert _hours(account) == {(12, "reads"): 1}
    assert not UsageSample.objects.using("relay").filter(tenant_id=gone).exists()
    assert not UsageHour.unscoped.using("relay").filter(tenant_id=gone).exists()


def test_writes_and_events_are_added_up_by_minute_as_well() -> None:
    account = make_tenant()
    _sample(account.tenant.id, NOON, document_writes=3, requests=1)
    _sample(account.tenant.id, NOON + MINUTE / 2, document_writes=2, live_events=7)
    _sample(account.tenant.id, NOON + MINUTE, live_events=5)
    _sample(account.tenant.id, NOON + 2 * MINUTE, requests=9)
    usage_roll_up.sweep()
    _sample(account.tenant.id, NOON + MINUTE, live_events=1)
    usage_roll_up.sweep()
    rows = UsageMinute.unscoped.using("relay").filter(tenant_id=account.tenant.id)
    assert {row.minute: (row.writes, row.events) for row in rows} == {
        NOON: (5, 7),
        NOON + MINUTE: (0, 6),
    }
