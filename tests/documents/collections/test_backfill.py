"""A new index takes in the documents that were there before, while reads and writes go on."""

from __future__ import annotations

import random
import threading
from uuid import UUID

import pytest

from documents.collections import backfill, removal
from documents.models import Index
from tests.caller import Caller, problem, with_key
from tests.documents.collections import stored
from tests.make import MadeTenant, make_tenant

BY_RANK = {"name": "by-rank", "fields": [["rank", 1]]}
BY_EMAIL = {"name": "by-email", "fields": [["email", 1]], "unique": True}


@pytest.fixture
def made() -> MadeTenant:
    return make_tenant(plan="dedicated")


@pytest.fixture
def caller(server: str, made: MadeTenant) -> Caller:
    return with_key(server, made.admin_key)


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backfill, "BATCH_DOCUMENTS", 20)


def path_of(made: MadeTenant) -> str:
    return f"/api/v1/tenants/{made.slug}/collections/things"


def collection(caller: Caller, made: MadeTenant, documents: list[object]) -> UUID:
    answer = caller.post(f"/api/v1/tenants/{made.slug}/collections", {"name": "things"})
    assert answer.status_code == 201, answer.text
    stored.put(made.tenant.id, "things", documents)
    return UUID(answer.json()["id"])


def declare(caller: Caller, made: MadeTenant, *indexes: object) -> list[dict[str, object]]:
    answer = caller.patch(path_of(made), {"indexes": list(indexes)})
    assert answer.status_code == 200, answer.text
    shown: list[dict[str, object]] = answer.json()["indexes"]
    return shown


def shown(caller: Caller, made: MadeTenant) -> dict[str, object]:
    index: dict[str, object] = caller.get(path_of(made)).json()["indexes"][0]
    return index


def run(made: MadeTenant, index: Index) -> None:
    backfill.backfill(tenant=str(made.tenant.id), index=index.number)


def test_existing_documents_are_found_by_a_new_index(caller: Caller, made: MadeTenant) -> None:
    identity = collection(caller, made, [{"_id": n, "rank": [n, -n]} for n in range(50)])
    assert declare(caller, made, BY_RANK)[0]["state"] == "building"
    index = stored.index(identity, "by-rank")
    run(made, index)
    assert shown(caller, made) == {
        **BY_RANK,
        "unique": False,
        "state": "ready",
        "progress": {"done": 50, "total": 50},
        "error": None,
    }
    assert stored.entries(index.number) == stored.wanted_entries(index)


def test_an_index_over_an_empty_collection_is_ready_immediately(
    caller: Caller, made: MadeTenant
) -> None:
    collection(caller, made, [])
    assert declare(caller, made, BY_RANK)[0]["state"] == "ready"


def test_progress_changes_the_etag(caller: Caller, made: MadeTenant) -> None:
    identity = collection(caller, made, [{"rank": n} for n in range(50)])
    declare(caller, made, BY_RANK)
    index = stored.index(identity, "by-rank")
    etag = caller.get(path_of(made)).headers["ETag"]
    assert backfill.step(made.tenant.id, index.number)
    partly = caller.get(path_of(made), If_None_Match=etag)
    assert partly.status_code == 200
    assert partly.json()["indexes"][0]["progress"]["done"] == 20
    run(made, index)
    assert caller.get(path_of(made), If_None_Match=etag).status_code == 200
    assert shown(caller, made)["state"] == "ready"


def test_an_interrupted_backfill_resumes_at_its_position(caller: Caller, made: MadeTenant) -> None:
    identity = collection(caller, made, [{"rank": n} for n in range(50)])
    declare(caller, made, BY_RANK)
    index = stored.index(identity, "by-rank")
    assert backfill.step(made.tenant.id, index.number)
    run(made, index)
    assert shown(caller, made)["progress"] == {"done": 50, "total": 50}
    assert stored.entries(index.number) == stored.wanted_entries(index)


def test_the_backfill_of_a_dropped_index_stops_and_leaves_no_rows(
    caller: Caller, made: MadeTenant
) -> None:
    identity = collection(caller, made, [{"rank": n} for n in range(50)])
    declare(caller, made, BY_RANK)
    index = stored.index(identity, "by-rank")
    assert backfill.step(made.tenant.id, index.number)
    assert declare(caller, made) == []
    run(made, index)
    removal.drop_index(index=index.number)
    assert stored.entries(index.number) == set()
    assert not Index.unscoped.using("relay").filter(number=index.number).exists()


def test_duplicate_values_make_the_backfill_of_a_unique_index_fail(
    caller: Caller, made: MadeTenant
) -> None:
    documents: list[object] = [{"_id": n, "email": f"{n}@example.test"} for n in range(50)]
    identity = collection(caller, made, [*documents, {"_id": "twin", "email": "7@example.test"}])
    declare(caller, made, BY_EMAIL)
    index = stored.index(identity, "by-email")
    run(made, index)
    failed = shown(caller, made)
    assert failed["state"] == "failed"
    assert "twin" in str(failed["error"])
    removal.drop_index(index=index.number)
    assert stored.entries(index.number) == set()
    assert shown(caller, made)["state"] == "failed", "its row stays to say why"
    stored.put(made.tenant.id, "things", [{"email": "8@example.test"}])


def test_a_failed_index_is_built_again_when_it_is_declared_again(
    caller: Caller, made: MadeTenant
) -> None:
    identity = collection(caller, made, [{"_id": "a", "email": "x"}, {"_id": "b", "email": "x"}])
    declare(caller, made, BY_EMAIL)
    run(made, stored.index(identity, "by-email"))
    assert caller.delete("/v1/collections/things/documents/a").status_code == 204
    assert declare(caller, made, BY_EMAIL)[0]["state"] == "building"
    (row,) = Index.unscoped.using("relay").filter(collection_id=identity, state="building")
    run(made, row)
    assert shown(caller, made)["state"] == "ready"


def test_a_document_that_cannot_be_indexed_is_named_in_the_index_error(
    caller: Caller, made: MadeTenant
) -> None:
    many = list(range(200))
    identity = collection(caller, made, [{"_id": "side-by-side", "a": many, "b": many}])
    declare(caller, made, {"name": "both", "fields": [["a", 1], ["b", 1]]})
    run(made, stored.index(identity, "both"))
    failed = shown(caller, made)
    assert failed["state"] == "failed"
    assert "side-by-side" in str(failed["error"])


def test_writers_obey_a_unique_index_during_its_backfill(caller: Caller, made: MadeTenant) -> None:
    identity = collection(caller, made, [{"_id": "old", "email": "x"}])
    declare(caller, made, BY_EMAIL)
    taken = caller.post("/v1/collections/things/documents", {"_id": "new", "email": "y"})
    assert taken.status_code == 201, taken.text
    refused = caller.post("/v1/collections/things/documents", {"email": "y"})
    problem(refused, 409, "duplicate_key")
    index = stored.index(identity, "by-email")
    run(made, index)
    assert stored.entries(index.number) == stored.wanted_entries(index)


def test_concurrent_writes_leave_the_index_exact(caller: Caller, made: MadeTenant) -> None:
    identity = collection(caller, made, [{"_id": n, "rank": n} for n in range(200)])
    declare(caller, made, BY_RANK)
    index = stored.index(identity, "by-rank")
    stop = threading.Event()
    refused: list[str] = []

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
                refused.append(answer.text)

    writers = [threading.Thread(target=write, args=(seed,)) for seed in range(4)]
    for writer in writers:
        writer.start()
    try:
        while backfill.step(made.tenant.id, index.number):
            # Between batches writers change what has been put in, and what has not.
            stop.wait(0.02)
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert refused == []
    assert shown(caller, made)["state"] == "ready"
    assert stored.entries(index.number) == stored.wanted_entries(index)
