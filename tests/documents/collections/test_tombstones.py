"""Tombstones are removed after a day, and no version is ever used twice."""

from __future__ import annotations

import datetime
import threading
from itertools import pairwise
from uuid import UUID

import psycopg
import pytest
from django.db import transaction

from documents.collections import tombstones
from documents.store.locks import lock_shared
from tests.caller import Caller, with_key
from tests.documents.collections import stored_documents
from tests.make import TenantAccount, make_tenant

DAY = datetime.timedelta(hours=24)


def collection(caller: Caller, account: TenantAccount) -> UUID:
    answer = caller.post(f"/api/v1/tenants/{account.slug}/collections", {"name": "things"})
    assert answer.status_code == 201, answer.text
    return UUID(answer.json()["id"])


def insert(caller: Caller, key: str) -> int:
    answer = caller.post("/v1/collections/things/documents", {"_id": key})
    assert answer.status_code == 201, answer.text
    return int(answer.json()["version"])


def delete(caller: Caller, key: str) -> None:
    assert caller.delete(f"/v1/collections/things/documents/{key}").status_code == 204


def age(postgres_url: str, collection_id: UUID, by: datetime.timedelta) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute(
            "UPDATE documents_document SET updated_at = updated_at - %s WHERE collection_id = %s",
            (by, collection_id),
        )


def test_a_tombstone_is_removed_after_a_day(
    caller: Caller, account: TenantAccount, postgres_url: str
) -> None:
    identity = collection(caller, account)
    insert(caller, "kept")
    insert(caller, "gone")
    delete(caller, "gone")
    age(postgres_url, identity, DAY - datetime.timedelta(minutes=1))
    tombstones.sweep()
    assert stored_documents.count(identity) == 2
    age(postgres_url, identity, datetime.timedelta(minutes=1))
    tombstones.sweep()
    assert stored_documents.count(identity) == 1
    assert caller.get("/v1/collections/things/documents/kept").status_code == 200


def test_versions_continue_after_those_of_purged_tombstones(
    caller: Caller, account: TenantAccount, postgres_url: str
) -> None:
    identity = collection(caller, account)
    for _ in range(3):
        insert(caller, "a")
        delete(caller, "a")
    insert(caller, "b")
    delete(caller, "b")
    age(postgres_url, identity, DAY)
    tombstones.sweep()
    assert insert(caller, "a") == 7
    assert insert(caller, "never-seen") == 7


def test_a_purge_in_batches_removes_all_tombstones(
    caller: Caller, account: TenantAccount, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tombstones, "BATCH_ROWS", 3)
    identity = collection(caller, account)
    stored_documents.put(account.tenant.id, "things", [{"_id": str(n)} for n in range(10)])
    answer = caller.post("/v1/collections/things/documents:delete", {"filter": {}})
    assert answer.status_code == 200, answer.text
    age(postgres_url, identity, DAY)
    tombstones.sweep()
    assert stored_documents.count(identity) == 0


def test_a_collection_with_writes_does_not_delay_the_purge_of_others(
    caller: Caller, account: TenantAccount, postgres_url: str
) -> None:
    busy = collection(caller, account)
    other = make_tenant()
    quiet = collection(with_key(caller.base, other.admin_key), other)
    for tenant in (account, other):
        its = with_key(caller.base, tenant.admin_key)
        insert(its, "a")
        delete(its, "a")
    age(postgres_url, busy, 2 * DAY)
    age(postgres_url, quiet, DAY)
    with transaction.atomic():
        lock_shared(busy)
        tombstones.sweep()
    assert (stored_documents.count(busy), stored_documents.count(quiet)) == (1, 0)
    tombstones.sweep()
    assert stored_documents.count(busy) == 0


def test_no_version_is_used_twice_while_purges_and_writes_race(
    caller: Caller, account: TenantAccount
) -> None:
    identity = collection(caller, account)
    stop = threading.Event()
    seen: dict[str, list[int]] = {key: [] for key in "abcd"}

    def write(key: str) -> None:
        for _ in range(25):
            seen[key].append(insert(caller, key))
            delete(caller, key)

    def purge() -> None:
        while not stop.is_set():
            tombstones.purge(identity, datetime.datetime.now(datetime.UTC))

    purger = threading.Thread(target=purge)
    writers = [threading.Thread(target=write, args=(key,)) for key in seen]
    for thread in (purger, *writers):
        thread.start()
    for writer in writers:
        writer.join()
    stop.set()
    purger.join()
    for versions in seen.values():
        assert len(versions) == 25
        assert all(later > earlier + 1 for earlier, later in pairwise(versions))
