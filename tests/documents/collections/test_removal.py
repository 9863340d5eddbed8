"""The contents of a dropped collection are removed in the background."""

from __future__ import annotations

from uuid import UUID

import pytest
from django.db import transaction

from documents.collections import lost_work, removal
from documents.models import Collection, ImportJob
from foundation.models import OutboxTask
from foundation.scope import scoped
from tests.caller import problem, with_key
from tests.documents.collections import stored_documents
from tests.make import make_tenant

INDEX = {"name": "by-x", "fields": [["x", 1]]}


def test_a_dropped_collection_leaves_nothing_and_its_name_can_be_reused(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "BATCH_ROWS", 7)
    account = make_tenant()
    caller = with_key(server, account.admin_key)
    path = f"/api/v1/tenants/{account.slug}/collections"
    body = {"name": "things", "indexes": [INDEX]}
    old = UUID(caller.post(path, body).json()["id"])
    index = stored_documents.index(old, "by-x")
    stored_documents.put(account.tenant.id, "things", [{"_id": n, "x": n} for n in range(30)])
    with scoped(tenant_id=account.tenant.id):
        ImportJob.objects.create(collection_id=old, mode=ImportJob.Mode.INSERT)

    assert caller.delete(f"{path}/things").status_code == 204
    problem(caller.post("/v1/collections/things/documents", {}), 404, "not_found")
    assert caller.post(path, body).status_code == 201
    stored_documents.put(account.tenant.id, "things", [{"_id": 0, "x": 0}])
    new = UUID(caller.get(f"{path}/things").json()["id"])
    fresh = caller.get('/v1/collections/things/documents/~{"$numberInt":"0"}').json()
    assert fresh["version"] == 1

    removal.drop(collection=str(old))
    assert stored_documents.count(old) == 0
    assert stored_documents.entries(index.number) == set()
    assert not Collection.unscoped.using("relay").filter(pk=old).exists()
    assert stored_documents.count(new) == 1
    assert len(stored_documents.entries(stored_documents.index(new, "by-x").number)) == 1


def test_a_removal_that_runs_out_of_time_continues_in_another_task(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "BATCH_ROWS", 7)
    monkeypatch.setattr(removal, "SLICE_S", -1.0)
    account = make_tenant()
    caller = with_key(server, account.admin_key)
    path = f"/api/v1/tenants/{account.slug}/collections"
    identity = caller.post(path, {"name": "things"}).json()["id"]
    stored_documents.put(account.tenant.id, "things", [{"x": n} for n in range(30)])
    caller.delete(f"{path}/things")
    OutboxTask.objects.using("relay").filter(tenant_id=account.tenant.id).delete()
    # Once it is committed, the row may be sent to the broker at any time.
    with transaction.atomic(using="relay"):
        removal.drop(collection=identity)
        waiting = OutboxTask.objects.using("relay").filter(arguments={"collection": identity})
        assert waiting.exists()
    assert stored_documents.count(UUID(identity)) == 23


def test_lost_removals_are_queued_again(server: str) -> None:
    account = make_tenant()
    caller = with_key(server, account.admin_key)
    path = f"/api/v1/tenants/{account.slug}/collections"
    kept = caller.post(path, {"name": "kept"}).json()["id"]
    gone = caller.post(path, {"name": "gone"}).json()["id"]
    stored_documents.put(account.tenant.id, "kept", [{"x": 1}])
    caller.patch(f"{path}/kept", {"indexes": [INDEX]})
    caller.delete(f"{path}/gone")
    index = stored_documents.index(UUID(kept), "by-x")
    past = index.created_at - 2 * lost_work.GRACE_PERIOD
    with scoped(tenant_id=account.tenant.id):
        type(index).objects.filter(number=index.number).update(created_at=past)
        Collection.objects.filter(pk=gone).update(updated_at=past)
    OutboxTask.objects.using("relay").filter(tenant_id=account.tenant.id).delete()

    with transaction.atomic(using="relay"):
        lost_work.sweep()
        queued = OutboxTask.objects.using("relay").filter(tenant_id=account.tenant.id)
        assert sorted(queued.values_list("name", flat=True)) == [
            "documents.collections.backfill",
            "documents.collections.drop",
        ]
