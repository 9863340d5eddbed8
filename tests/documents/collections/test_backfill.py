"""A new index is filled with existing documents, while reads and writes continue."""

from __future__ import annotations

import random
import threading
from uuid import UUID

import pytest

from documents.collections import backfill, removal
from documents.models import Index
from tests.caller import Caller, problem
from tests.documents.collections import stored_documents
from tests.make import TenantAccount

BY_RANK = {"name": "by-rank", "fields": [["rank", 1]]}
BY_EMAIL = {"name": "by-email", "fields": [["email", 1]], "unique": True}


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backfill, "BATCH_DOCUMENTS", 20)


def path_of(account: TenantAccount) -> str:
    return f"/api/v1/tenants/{account.slug}/collections/things"


def collection(caller: Caller, account: TenantAccount, documents: list[object]) -> UUID:
    answer = caller.post(f"/api/v1/tenants/{account.slug}/collections", {"name": "things"})
    assert answer.status_code == 201, answer.text
    stored_documents.put(account.tenant.id, "things", documents)
    return UUID(answer.json()["id"])


def declare(caller: Caller, account: TenantAccount, *indexes: object) -> list[dict[str, object]]:
    answer = caller.patch(path_of(account), {"indexes": list(indexes)})
    assert answer.status_code == 200, answer.text
    shown: list[dict[str, object]] = answer.json()["indexes"]
    return shown


def shown(caller: Caller, account: TenantAccount) -> dict[str, object]:
    index: dict[str, object] = caller.get(path_of(account)).json()["indexes"][0]
    return index


def run(account: TenantAccount, index: Index) -> None:
    backfill.backfill(tenant=str(account.tenant.id), index=index.number)


def test_existing_documents_are_found_by_a_new_index(
    caller: Caller, account: TenantAccount
) -> None:
    identity = collection(caller, account, [{"_id": n, "rank": [n, -n]} for n in range(50)])
    assert declare(caller, account, BY_RANK)[0]["state"] == "building"
    index = stored_documents.index(identity, "by-rank")
    run(account, index)
    assert shown(caller, account) == {
        **BY_RANK,
        "unique": False,
        "technique": "auto",
        "technique_in_use": "composite",
        "advice": None,
        "state": "ready",
        "progress": {"done": 50, "total": 50},
        "error": None,
    }
    assert stored_documents.entries(index.number) == stored_documents.wanted_entries(index)


def test_an_index_over_an_empty_collection_is_ready_immediately(
    caller: Caller, account: TenantAccount
) -> None:
    collection(caller, account, [])
    assert declare(caller, account, BY_RANK)[0]["state"] == "ready"


def test_progress_changes_the_etag(caller: Caller, account: TenantAccount) -> None:
    identity = collection(caller, account, [{"rank": n} for n in range(50)])
    declare(caller, account, BY_RANK)
    index = stored_documents.index(identity, "by-rank")
    etag = caller.get(path_of(account)).headers["ETag"]
    assert backfill.step(account.tenant.id, index.number)
    partly = caller.get(path_of(account), If_None_Match=etag)
    assert partly.status_code == 200
    assert partly.json()["indexes"][0]["progress"]["done"] == 20
    run(account, index)
    assert caller.get(path_of(account), If_None_Match=etag).status_code == 200
    assert shown(caller, account)["state"] == "ready"


def test_an_interrupted_backfill_resumes_at_its_position(
    caller: Caller, account: TenantAccount
) -> None:
    identity = collection(caller, account, [{"rank": n} for n in range(50)])
    declare(caller, account, BY_RANK)
    index = stored_documents.index(identity, "by-rank")
    assert backfill.step(account.tenant.id, index.number)
    run(account, index)
    assert shown(caller, account)["progress"] == {"done": 50, "total": 50}
    assert stored_documents.entries(index.number) == stored_documents.wanted_entries(index)


def test_the_backfill_of_a_dropped_index_stops_and_leaves_no_rows(
    caller: Caller, account: TenantAccount
) -> None:
    identity = collection(caller, account, [{"rank": n} for n in range(50)])
    declare(caller, account, BY_RANK)
    index = stored_documents.index(identity, "by-rank")
    assert backfill.step(account.tenant.id, index.number)
    assert declare(caller, account) == []
    run(account, index)
    removal.drop_index(index=index.number)
    assert stored_documents.entries(index.number) == set()
    assert not Index.unscoped.using("relay").filter(number=index.number).exists()


def test_duplicate_values_make_the_backfill_of_a_unique_index_fail(
    caller: Caller, account: TenantAccount
) -> None:
    documents: list[object] = [{"_id": n, "email": f"{n}@example.test"} for n in range(50)]
    identity = collection(caller, account, [*documents, {"_id": "twin", "email": "7@example.test"}])
    declare(caller, account, BY_EMAIL)
    index = stored_documents.index(identity, "by-email")
    run(account, index)
    failed = shown(caller, account)
    assert failed["state"] == "failed"
    assert "twin" in str(failed["error"])
    removal.drop_index(index=index.number)
    assert stored_documents.entries(index.number) == set()
    assert shown(caller, account)["state"] == "failed", "its row stays to say why"
    stored_documents.put(account.tenant.id, "things", [{"email": "8@example.test"}])


def test_a_failed_index_is_built_again_when_it_is_declared_again(
    caller: Caller, account: TenantAccount
) -> None:
    identity = collection(caller, account, [{"_id": "a", "email": "x"}, {"_id": "b", "email": "x"}])
    declare(caller, account, BY_EMAIL)
    run(account, stored_documents.index(identity, "by-email"))
    assert caller.delete("/v1/collections/things/documents/a").status_code == 204
    assert declare(caller, account, BY_EMAIL)[0]["state"] == "building"
    (row,) = Index.unscoped.using("relay").filter(collection_id=identity, state="building")
    run(account, row)
    assert shown(caller, account)["state"] == "ready"


def test_a_document_that_cannot_be_indexed_is_named_in_the_index_error(
    caller: Caller, account: TenantAccount
) -> None:
    many = list(range(200))
    identity = collection(caller, account, [{"_id": "side-by-side", "a": many, "b": many}])
    declare(caller, account, {"name": "both", "fields": [["a", 1], ["b", 1]]})
    run(account, stored_documents.index(identity, "both"))
    failed = shown(caller, account)
    assert failed["state"] == "failed"
    assert "side-by-side" in str(failed["error"])


def test_writers_obey_a_unique_index_during_its_backfill(
    caller: Caller, account: TenantAccount
) -> None:
    identity = collection(caller, account, [{"_id": "old", "email": "x"}])
    declare(caller, account, BY_EMAIL)
    taken = caller.post("/v1/collections/things/documents", {"_id": "new", "email": "y"})
    assert taken.status_code == 201, taken.text
    refusal = caller.post("/v1/collections/things/documents", {"email": "y"})
    problem(refusal, 409, "duplicate_key")
    index = stored_documents.index(identity, "by-email")
    run(account, index)
    assert stored_documents.entries(index.number) == stored_documents.wanted_entries(index)


def test_concurrent_writes_leave_the_index_exact(caller: Caller, account: TenantAccount) -> None:
    identity = collection(caller, account, [{"_id": n, "rank": n} for n in range(200)])
    declare(caller, account, BY_RANK)
    index = stored_documents.index(identity, "by-rank")
    stop = threading.Event()
    refusals: list[str] = []

    def write(seed: int) -> None:
        choice = random.Random(seed)
        while not stop.is_set():
            key = choice.randrange(300)
            path = f'/v1/collections/things/documents/~{{"$numberInt":"{key}"}}'
            if choice.random() < 0.3:
                answer = caller.delete(path)
            else:
                ranks = [choice.randrange(5) for _ in range(choice.randrange(4))]
                answer = caller.call("PUT", path, {"rank": ranks})
            if answer.status_code not in (200, 201, 204, 404):
                refusals.append(answer.text)

    writers = [threading.Thread(target=write, args=(seed,)) for seed in range(4)]
    for writer in writers:
        writer.start()
    try:
        while backfill.step(account.tenant.id, index.number):
            # Between batches, writers change documents that have been indexed, and others that have
            # not.
            stop.wait(0.02)
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert refusals == []
    assert shown(caller, account)["state"] == "ready"
    assert stored_documents.entries(index.number) == stored_documents.wanted_entries(index)
