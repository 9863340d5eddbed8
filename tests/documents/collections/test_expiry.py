"""Documents of collections with a TTL are deleted when they expire."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from uuid import UUID

import pytest

from documents.backend import Backend
from documents.collections import backfill, expiry
from tests.caller import Caller
from tests.documents.collection import default_backend
from tests.documents.collections import stored_documents
from tests.make import TenantAccount


@pytest.fixture(params=[*Backend], ids=str)
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    """The backend of the collections that a test makes."""
    token = default_backend.set(request.param)
    yield request.param
    default_backend.reset(token)


def path_of(account: TenantAccount) -> str:
    return f"/api/v1/tenants/{account.slug}/collections"


def collection(caller: Caller, account: TenantAccount, **fields: object) -> UUID:
    ttl = {"field": "at", "after_s": 60}
    body = {"name": "visits", "ttl": ttl, "backend": default_backend.get(), **fields}
    answer = caller.post(path_of(account), body)
    assert answer.status_code == 201, answer.text
    return UUID(answer.json()["id"])


def ago(seconds: float) -> dict[str, str]:
    moment = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=seconds)
    return {"$date": moment.strftime("%Y-%m-%dT%H:%M:%SZ")}


def ids(caller: Caller) -> list[object]:
    answer = caller.post("/v1/collections/visits/query", {})
    assert answer.status_code == 200, answer.text
    return [item["id"] for item in answer.json()["items"]]


@pytest.mark.usefixtures("backend")
def test_a_document_expires_after_its_date_and_not_before(
    caller: Caller, account: TenantAccount
) -> None:
    collection(caller, account)
    documents = [
        {"_id": "old", "at": ago(61)},
        {"_id": "young", "at": ago(30)},
        {"_id": "future", "at": ago(-3600)},
        {"_id": "some-old", "at": [ago(-3600), ago(7200)]},
        {"_id": "text", "at": "2001-01-01T00:00:00Z"},
        {"_id": "number", "at": 5},
        {"_id": "null", "at": None},
        {"_id": "absent"},
    ]
    stored_documents.put(account.tenant.id, "visits", documents)
    expiry.sweep()
    assert ids(caller) == ["absent", "future", "null", "number", "text", "young"]


def test_expiry_is_an_ordinary_delete(caller: Caller, account: TenantAccount) -> None:
    identity = collection(caller, account, indexes=[{"name": "by-x", "fields": [["x", 1]]}])
    stored_documents.put(account.tenant.id, "visits", [{"_id": "a", "x": 1, "at": ago(61)}])
    expiry.sweep()
    assert stored_documents.entries(stored_documents.index(identity, "by-x").number) == set()
    assert stored_documents.entries(stored_documents.index(identity, "~ttl").number) == set()
    published = stored_documents.rows(
        "SELECT version, deleted_id IS NOT NULL FROM documents_outbox "
        "WHERE collection_id = %s ORDER BY version",
        identity,
    )
    assert published == [(1, False), (2, True)]
    again = caller.post("/v1/collections/visits/documents", {"_id": "a"})
    assert again.json()["version"] == 3


@pytest.mark.usefixtures("backend")
def test_a_backlog_is_processed_in_batches(
    caller: Caller, account: TenantAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expiry, "BATCH_DOCUMENTS", 20)
    collection(caller, account)
    stored_documents.put(account.tenant.id, "visits", [{"at": ago(61 + n)} for n in range(50)])
    expiry.sweep()
    assert ids(caller) == []


@pytest.mark.usefixtures("backend")
def test_large_documents_expire_too(
    caller: Caller, account: TenantAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expiry, "BATCH_BYTES", 1)
    collection(caller, account)
    stored_documents.put(
        account.tenant.id, "visits", [{"at": ago(61 + n), "x": "y" * 999} for n in range(5)]
    )
    expiry.sweep()
    assert ids(caller) == []


@pytest.mark.usefixtures("backend")
def test_a_ttl_can_be_added_changed_and_removed(caller: Caller, account: TenantAccount) -> None:
    identity = collection(caller, account, ttl=None)
    stored_documents.put(
        account.tenant.id, "visits", [{"_id": n, "at": ago(100), "on": ago(50)} for n in (1, 2)]
    )
    path = f"{path_of(account)}/visits"
    changed = caller.patch(path, {"ttl": {"field": "at", "after_s": 200}}).json()
    assert changed["indexes"] == [], "the index that finds what has expired is ours"
    backfill.backfill(
        tenant=str(account.tenant.id), index=stored_documents.index(identity, "~ttl").number
    )
    expiry.sweep()
    assert len(ids(caller)) == 2
    caller.patch(path, {"ttl": None})
    expiry.sweep()
    assert len(ids(caller)) == 2
    caller.patch(path, {"ttl": {"field": "on", "after_s": 40}})
    (number,) = (
        number
        for (number,) in stored_documents.rows(
            "SELECT number FROM documents_index WHERE collection_id = %s AND state = 'building'",
            identity,
        )
    )
    backfill.backfill(tenant=str(account.tenant.id), index=int(str(number)))
    expiry.sweep()
    assert ids(caller) == []
