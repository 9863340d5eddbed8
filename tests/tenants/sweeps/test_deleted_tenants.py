"""A tenant whose grace period is over leaves no trace in any store."""

from __future__ import annotations

import datetime
import os
import secrets
from uuid import UUID

import psycopg
from django.db import connections
from django.utils import timezone

from aggregates.models import Aggregate
from analytics.models import Dataset, FileStage, Run, StoredFile, Upload
from documents.models import Collection, CollectionMove, ImportJob, Index
from foundation.ids import uuid7
from foundation.limits import Limit, limiter
from foundation.models import CallProgress, DeadLetter, IdempotencyRecord, OutboxTask
from foundation.scope import scoped
from realtime.clusters import epochs
from realtime.grid.size import GridSize
from realtime.models import Cluster
from sources.connection import seal_url
from sources.models import Source
from storage_engine.models import DeliveredSubscription, Topic
from tenants import audit, error_log, purge, usage
from tenants.models import (
    Invitation,
    Issuer,
    PersonalToken,
    Quota,
    RequestGap,
    SavedQuery,
    Tenant,
    UsageHour,
    UsageMinute,
    UsageSample,
    Webhook,
    WebhookDelivery,
)
from tenants.request_log import recorder
from tenants.request_log.recorder import RequestEntry, RequestKind
from tenants.roles import Role
from tenants.sweeps import deleted_tenants
from tests.documents.collections import stored_documents
from tests.make import TenantAccount, make_key, make_tenant, unique

HOUR = datetime.timedelta(hours=1)


def _fill(account: TenantAccount) -> None:
    """Store something of the tenant in every store."""
    tenant, now = account.tenant, timezone.now()
    Quota(tenant_id=tenant.id, limits={"members": 7}).save(using="staff")
    make_key(tenant)
    error_log.note(tenant.id, error_log.Area.REQUEST, "forbidden", place="GET /x")
    error_log.flush()
    kind = RequestKind.REQUEST
    recorder.note(RequestEntry(str(tenant.id), kind, "GET", "/x", 200, 0.1, 0, 0, "", ""))
    recorder.flush()
    RequestGap.unscoped.using("relay").create(tenant_id=tenant.id, minute=now, dropped=1)
    with scoped(tenant_id=tenant.id, user_id=account.owner.id):
        Invitation.objects.create(
            email=unique("g") + "@example.test",
            role=Role.VIEWER,
            token_hash=os.urandom(32),
            expires_at=now + HOUR,
        )
        SavedQuery.objects.create(name="q", kind="collection", source="things", query="{}")
        Issuer.objects.create(name="i", issuer="https://i.test", audience="a")
        PersonalToken(
            user_id=account.owner.pk,
            tenant_id=tenant.pk,
            name="t",
            key_id=secrets.token_hex(8),
            secret_hash=b"x",
        ).save()
        webhook = Webhook.objects.create(
            name="w",
            url="https://example.test",
            events=["*"],
            sealed_secret=b"",
            state=Webhook.State.PENDING,
        )
        first = WebhookDelivery.objects.create(
            webhook=webhook, event_id=uuid7(), event_type="x.y", payload={}
        )
        WebhookDelivery.objects.create(
            webhook=webhook, event_id=uuid7(), event_type="x.y", payload={}, redelivery_of=first
        )
        audit.record(None, "tenant.filled", audit.AuditTarget("tenant", str(tenant.id)))
        IdempotencyRecord.objects.create(
            tenant_id=tenant.id, key_hash=os.urandom(32), request_hash=b"", status=200, body=b""
        )
        CallProgress.objects.create(
            tenant_id=tenant.id, key_hash=os.urandom(32), request_hash=b"", state=b""
        )
        OutboxTask(tenant_id=tenant.id, name="x", due_at=now + 10 * HOUR).save()
    UsageSample.objects.using("relay").create(tenant_id=tenant.id, at=now, amounts={"reads": 1})
    UsageHour(tenant_id=tenant.id, hour=now, metric="reads", amount=1).save(using="relay")
    UsageMinute(tenant_id=tenant.id, minute=now, writes=1).save(using="relay")
    DeadLetter.objects.using("relay").create(
        tenant_id=tenant.id, task_id=str(uuid7()), name="x", error="e"
    )
    _fill_documents(tenant)
    _fill_topics(tenant, webhook)
    _fill_datasets(tenant)
    with scoped(tenant_id=tenant.id):
        Aggregate.objects.create(name="sums", definition="{}")
        Cluster.objects.create(
            write_partitions=1, node_size="small", tier="burstable", due_at=now + 10 * HOUR
        )
    epochs.add(tenant.id, GridSize(1))
    # Slow enough that the counter still exists when the test checks.
    limiter().check([Limit("tenant", f"t:{tenant.id}", rate_per_s=0.01, burst=10)])


def _fill_source(collection: Collection) -> None:
    """Make a collection follow a table whose database is unreachable."""
    source = Source(
        tenant_id=collection.tenant_id,
        collection_id=collection.id,
        collection_name=collection.name,
        connection="postgresql://x@127.0.0.1:1/x",
        schema_name="public",
        table_name="things",
        key=["id"],
    )
    source.sealed_connection = seal_url("postgresql://x:y@127.0.0.1:1/x", source.pk)
    source.save()


def _fill_documents(tenant: Tenant) -> None:
    with scoped(tenant_id=tenant.id):
        collection = Collection.objects.create(name="things")
        Index.objects.create(
            collection=collection, name="by-x", fields=[["x", 1]], state=Index.State.READY
        )
        ImportJob.objects.create(collection=collection, mode=ImportJob.Mode.INSERT)
        CollectionMove.objects.create(collection=collection, backend="native", error="x")
    stored_documents.put(tenant.id, "things", [{"x": 1}])
    # The write is metered, and its usage must not be stored while the test checks.
    usage.flush()
    with scoped(tenant_id=tenant.id), connections["default"].cursor() as cursor:
        cursor.execute(
            "INSERT INTO documents_outbox (slot, tenant_id, collection_id, key, key_hash, version, "
            "rules_version) SELECT slot, %s, %s, '', 0, 1, 1 FROM generate_series(0, 7) AS slot",
            (tenant.id, collection.id),
        )
        cursor.execute(
            "INSERT INTO documents_movechange (tenant_id, collection_id, key, version) "
            "VALUES (%s, %s, '', 1)",
            (tenant.id, collection.id),
        )
    with scoped(tenant_id=tenant.id):
        _fill_source(collection)


def _fill_topics(tenant: Tenant, webhook: Webhook) -> None:
    with scoped(tenant_id=tenant.id):
        topic = Topic.objects.create(name="news", kind="flat", retention_s=60, max_data_bytes=9)
        DeliveredSubscription.objects.create(
            topic=topic,
            webhook=webhook,
            name="x:y",
            public_id="y.1",
            position=1,
            expires_at=timezone.now() + HOUR,
        )


def _fill_datasets(tenant: Tenant) -> None:
    with scoped(tenant_id=tenant.id):
        dataset = Dataset.objects.create(name="posts", definition="{}", retention_s=60)
        upload = Upload.objects.create(dataset=dataset, name="u")
        StoredFile.objects.create(
            dataset=dataset,
            stage=FileStage.UNSORTED,
            upload=upload,
            table="posts",
            path="u.arrow",
            rows=1,
            bytes=1,
        )
        now = timezone.now()
        Run.objects.create(
            dataset=dataset,
            stage=Run.Stage.SORTED,
            first=1,
            last=1,
            rows=1,
            bytes=1,
            first_at=now,
            last_at=now,
        )


def _delete(account: TenantAccount, purge_at: datetime.datetime) -> None:
    Tenant.objects.using("relay").filter(pk=account.tenant.id).update(
        state=Tenant.State.DELETING, deleted_at=timezone.now(), purge_at=purge_at
    )


def _tables_of_tenants(postgres_url: str) -> set[str]:
    with psycopg.connect(postgres_url) as connection:
        rows = connection.execute(
            "SELECT table_name FROM information_schema.columns "
            "WHERE column_name = 'tenant_id' AND table_schema = 'public'"
        ).fetchall()
    return {name for (name,) in rows}


def test_nothing_of_a_purged_tenant_is_left_in_any_store(postgres_url: str) -> None:
    account, neighbour = make_tenant(), make_tenant()
    _fill(account)
    _fill(neighbour)
    traces = purge.find_traces(account.tenant.id)
    result = {trace.split()[1].rstrip(":") for trace in traces if trace.startswith("table")}
    assert _tables_of_tenants(postgres_url) <= result, "the test leaves something in every table"
    assert any(trace.startswith("valkey key") for trace in traces)
    before = purge.find_traces(neighbour.tenant.id)

    _delete(account, timezone.now())
    deleted_tenants.sweep()
    deleted_tenants.purge_tenant(tenant=str(account.tenant.id))

    assert purge.find_traces(account.tenant.id) == []
    assert purge.find_traces(neighbour.tenant.id) == before


def test_a_tenant_within_its_grace_period_is_not_removed() -> None:
    account = make_tenant()
    _delete(account, timezone.now() + HOUR)
    deleted_tenants.purge_tenant(tenant=str(account.tenant.id))
    assert Tenant.objects.using("relay").filter(pk=account.tenant.id).exists()


def test_a_restored_tenant_is_not_removed() -> None:
    account = make_tenant()
    _delete(account, timezone.now() - HOUR)
    Tenant.objects.using("relay").filter(pk=account.tenant.id).update(state=Tenant.State.ACTIVE)
    deleted_tenants.purge_tenant(tenant=str(account.tenant.id))
    assert Tenant.objects.using("relay").filter(pk=account.tenant.id).exists()


def test_an_interrupted_purge_starts_again_and_finishes() -> None:
    class PowerCutError(Exception):
        pass

    cut_off = True

    def cleaner(tenant_id: UUID) -> None:
        """The cleaner of a later app, which runs first."""
        if cut_off:
            raise PowerCutError

    account = make_tenant()
    _fill(account)
    _delete(account, timezone.now())
    purge.register_cleaner(cleaner)
    try:
        for _ in range(2):
            try:
                deleted_tenants.purge_tenant(tenant=str(account.tenant.id))
            except PowerCutError:
                assert Tenant.objects.using("relay").filter(pk=account.tenant.id).exists()
                cut_off = False
    finally:
        purge._cleaners.remove(cleaner)
    assert purge.find_traces(account.tenant.id) == []


def test_purging_twice_changes_nothing() -> None:
    account = make_tenant()
    _delete(account, timezone.now())
    for _ in range(2):
        purge.purge(account.tenant.id)
    assert purge.find_traces(account.tenant.id) == []
