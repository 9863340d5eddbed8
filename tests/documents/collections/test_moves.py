"""Collections move to the other backend while they are read and written."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from random import Random
from typing import Any
from uuid import uuid4

import pytest

from documents.backend import Backend
from documents.collections import mover, removal
from documents.collections.mover import MoveProgress
from documents.models import Collection, CollectionMove
from tests.caller import Caller
from tests.make import TenantAccount

INDEXES = [
    {"name": "by-code", "fields": [["code", 1]], "unique": True},
    {"name": "by-shop", "fields": [["shop", 1], ["price", -1]]},
    {"name": "by-tag", "fields": [["tags", 1]]},
]
OTHER = {Backend.POSTGRES: Backend.NATIVE, Backend.NATIVE: Backend.POSTGRES}
both_directions = pytest.mark.parametrize("backend", list(Backend))
#: Writes before the move begins, and documents of each writer.
BEFORE, IDS = 200, 60
DATA = "/v1/collections/things"


@pytest.fixture(autouse=True)
def _without_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    """No live queries have to be served."""
    monkeypatch.setattr(mover, "GRID_WAIT", timedelta(0))


def path_of(account: TenantAccount) -> str:
    return f"/api/v1/tenants/{account.slug}/collections"


def create(caller: Caller, account: TenantAccount, backend: str, **fields: object) -> None:
    body = {"name": "things", "backend": backend, "indexes": INDEXES, **fields}
    answer = caller.post(path_of(account), body)
    assert answer.status_code == 201, answer.text


def change(caller: Caller, account: TenantAccount, **fields: object) -> Any:
    return caller.patch(f"{path_of(account)}/things", fields)


def shown(caller: Caller, account: TenantAccount) -> Any:
    return caller.get(f"{path_of(account)}/things").json()


def begin(caller: Caller, account: TenantAccount, backend: str) -> None:
    answer = change(caller, account, backend=backend)
    assert answer.status_code == 200, answer.text


def row(account: TenantAccount) -> Collection:
    return Collection.unscoped.using("relay").get(tenant=account.tenant, name="things")


def step(account: TenantAccount) -> MoveProgress:
    return mover.step(account.tenant.id, row(account).pk)


def finish(account: TenantAccount) -> None:
    deadline = time.monotonic() + 60
    while step(account) is not MoveProgress.FINISHED:
        assert time.monotonic() < deadline


def insert(caller: Caller, document: object, key: str | None = None) -> Any:
    headers = {} if key is None else {"Idempotency-Key": key}
    return caller.post(f"{DATA}/documents", document, **headers)


def everything(caller: Caller) -> list[Any]:
    body = {"sort": [["_id", 1]], "limit": 1_000}
    answer = caller.post(f"{DATA}/query", body)
    assert answer.status_code == 200, answer.text
    items: list[Any] = answer.json()["items"]
    return items


class ConcurrentWriter:
    """Changes documents with ids of its own, and notes the versions that were acknowledged."""

    def __init__(self, caller: Caller, number: int) -> None:
        self._caller = caller
        self._random = Random(number)
        self._ids = [f"{number}-{n:03}" for n in range(IDS)]
        #: The last version of each id; negative: it was deleted.
        self.versions: dict[str, int] = {}
        self.documents: dict[str, Any] = {}

    def write(self) -> None:
        identity = self._random.choice(self._ids)
        is_present = self.versions.get(identity, 0) > 0
        if is_present and self._random.random() < 0.3:
            answer = self._caller.delete(f"{DATA}/documents/{identity}")
            assert answer.status_code == 204, answer.text
            # A deletion is a version.
            self.versions[identity] = -self.versions[identity] - 1
            self.documents.pop(identity)
            return
        document = self._document(identity)
        answer = self._caller.put(f"{DATA}/documents/{identity}", document)
        if answer.status_code == 409 and answer.json()["code"] == "duplicate_key":
            return
        assert answer.status_code in (200, 201), answer.text
        version = answer.json()["version"]
        assert version > abs(self.versions.get(identity, 0)), identity
        self.versions[identity] = version
        self.documents[identity] = document

    def _document(self, identity: str) -> Any:
        pick = self._random.randrange
        return {
            "_id": identity,
            "code": pick(300),
            "shop": pick(5),
            "price": pick(100),
            "tags": [pick(9) for _ in range(pick(4))],
        }


@contextmanager
def writing(writers: list[ConcurrentWriter]) -> Iterator[None]:
    """Let writers change documents until the block ends."""
    stop = threading.Event()

    def run(writer: ConcurrentWriter) -> None:
        while not stop.is_set():
            writer.write()

    with ThreadPoolExecutor(len(writers)) as pool:
        tasks = [pool.submit(run, writer) for writer in writers]
        try:
            yield
        finally:
            stop.set()
        for task in tasks:
            task.result()


def check(caller: Caller, writers: list[ConcurrentWriter]) -> None:
    """Compare documents and versions with what was acknowledged, and each index with a scan."""
    items = everything(caller)
    versions = {item["id"]: item["version"] for item in items}
    documents = {item["id"]: item["document"] for item in items}
    expected = {
        identity: version
        for writer in writers
        for identity, version in writer.versions.items()
        if version > 0
    }
    assert versions == expected
    assert documents == {key: value for one in writers for key, value in one.documents.items()}
    for name, values in (("code", range(300)), ("shop", range(5)), ("tags", range(9))):
        for value in values:
            body = {"filter": {name: value}, "limit": 1_000}
            answer = caller.post(f"{DATA}/query", body).json()
            matching = {
                key
                for key, document in documents.items()
                if value == document[name] or value in (document["tags"] if name == "tags" else ())
            }
            assert {item["id"] for item in answer["items"]} == matching, (name, value)
    counted = caller.post(f"{DATA}/count", {}).json()
    assert counted["count"] == len(documents)


@both_directions
def test_a_collection_moves_while_it_is_written(
    caller: Caller, account: TenantAccount, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("documents.collections.node_copies.STEP_DOCUMENTS", 20)
    monkeypatch.setattr("documents.collections.mover.FEW_CHANGES", 20)
    create(caller, account, backend)
    writers = [ConcurrentWriter(caller, number) for number in range(3)]
    for number in range(BEFORE):
        writers[number % 3].write()
    before = {item["id"]: item for item in everything(caller)}
    with writing(writers):
        begin(caller, account, OTHER[backend])
        finish(account)
        moved = {writer: len(writer.versions) for writer in writers}
        assert shown(caller, account)["backend"] == OTHER[backend]
    assert moved
    check(caller, writers)
    for item in everything(caller):
        if item["version"] == before.get(item["id"], {}).get("version"):
            assert item == before[item["id"]]
    for _ in range(50):
        writers[0].write()
    check(caller, writers)


@both_directions
def test_a_step_that_is_interrupted_is_repeated(
    caller: Caller, account: TenantAccount, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("documents.collections.node_copies.STEP_DOCUMENTS", 20)
    create(caller, account, backend)
    writers = [ConcurrentWriter(caller, number) for number in range(2)]
    for number in range(BEFORE):
        writers[number % 2].write()
    begin(caller, account, OTHER[backend])
    random = Random(1)
    interrupted = 0

    class Interrupted(Exception):
        pass

    def sometimes(call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: object) -> Any:
            nonlocal interrupted
            result = call(*arguments)
            if random.random() < 0.4:
                interrupted += 1
                raise Interrupted
            return result

        return run

    names = ("_is_nearly_equal", "_switch", "install_after_commit")
    for name in names:
        monkeypatch.setattr(mover, name, sometimes(getattr(mover, name)))
    result = MoveProgress.CONTINUES
    while result is not MoveProgress.FINISHED:
        if row(account).move_stage != Collection.MoveStage.SEALED:
            writers[random.randrange(2)].write()
        try:
            result = step(account)
        except Interrupted:
            result = MoveProgress.CONTINUES
    assert interrupted
    assert shown(caller, account)["backend"] == OTHER[backend]
    check(caller, writers)
    writers[0].write()
    check(caller, writers)


@both_directions
def test_a_collection_moves_back_and_what_it_has_left_is_removed(
    caller: Caller, account: TenantAccount, backend: Backend
) -> None:
    create(caller, account, backend)
    writer = ConcurrentWriter(caller, 1)
    for _ in range(50):
        writer.write()
    begin(caller, account, OTHER[backend])
    finish(account)
    for _ in range(50):
        writer.write()
    begin(caller, account, backend)
    finish(account)
    check(caller, [writer])
    arguments = {"tenant": str(account.tenant.id), "collection": str(row(account).pk)}
    removal.remove_copy(**arguments, backend=OTHER[backend])
    removal.remove_copy(**arguments, backend=backend)
    check(caller, [writer])


@both_directions
def test_a_call_with_an_idempotency_key_is_executed_once(
    caller: Caller, account: TenantAccount, backend: Backend
) -> None:
    create(caller, account, backend)
    key = str(uuid4())
    first = insert(caller, {"code": 1}, key)
    assert first.status_code == 201, first.text
    begin(caller, account, OTHER[backend])
    finish(account)
    second = insert(caller, {"code": 1}, key)
    assert (second.status_code, second.json()) == (201, first.json())
    assert second.headers["Idempotency-Replayed"] == "true"
    other = insert(caller, {"code": 2}, key)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_mismatch")
    assert len(everything(caller)) == 1


def test_a_move_is_shown_and_can_be_cancelled(caller: Caller, account: TenantAccount) -> None:
    create(caller, account, "postgres")
    assert shown(caller, account)["move"] is None
    insert(caller, {"code": 1})
    begin(caller, account, "native")
    move = {
        "backend": "native",
        "state": "copying",
        "progress": {"done": 0, "total": 0},
        "error": None,
    }
    assert shown(caller, account)["move"] == move
    step(account)
    step(account)
    move["progress"] = {"done": 1, "total": 1}
    assert shown(caller, account)["move"] == move
    listed = caller.get(path_of(account)).json()["items"]
    assert [one["move"] for one in listed] == [move]
    begin(caller, account, "postgres")
    answer = shown(caller, account)
    assert (answer["backend"], answer["move"]) == ("postgres", None)
    assert step(account) is MoveProgress.FINISHED
    insert(caller, {"code": 2})
    assert len(everything(caller)) == 2


def test_what_a_move_excludes(caller: Caller, account: TenantAccount) -> None:
    create(caller, account, "native")
    lazy = [{"name": "by-shop", "fields": [["shop", 1]], "technique": "lazy"}]
    assert change(caller, account, indexes=lazy).status_code == 200
    answer = change(caller, account, backend="postgres")
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")


def test_indexes_stay_as_they_are_during_a_move(caller: Caller, account: TenantAccount) -> None:
    create(caller, account, "postgres")
    insert(caller, {"code": 1})
    begin(caller, account, "native")
    changes: list[dict[str, object]] = [
        {"indexes": []},
        {"ttl": {"field": "at", "after_s": 5}},
    ]
    for fields in changes:
        answer = change(caller, account, **fields)
        assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    # What writers have to obey can change at any time.
    schema = {"properties": {"code": {"type": "number"}}}
    answer = change(caller, account, schema=schema)
    assert answer.status_code == 200, answer.text
    finish(account)
    answer = insert(caller, {"code": "x"})
    assert answer.json()["code"] == "invalid_document", answer.text
    assert insert(caller, {"code": 2}).status_code == 201


def test_a_failed_move_leaves_the_collection_where_it_is(
    caller: Caller, account: TenantAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(caller, account, "postgres")
    for code in range(3):
        insert(caller, {"code": code})
    begin(caller, account, "native")
    with monkeypatch.context() as patch:
        patch.setattr("documents.collections.node_copies.NodeCopies._store", lambda *_: None)
        finish(account)
    answer = shown(caller, account)
    assert answer["backend"] == "postgres"
    assert answer["move"]["state"] == "failed"
    assert answer["move"]["error"] == "0 of 3 documents were copied."
    assert len(everything(caller)) == 3
    insert(caller, {"code": 7})
    begin(caller, account, "native")
    finish(account)
    assert not CollectionMove.unscoped.using("relay").filter(tenant=account.tenant).exists()
    assert len(everything(caller)) == 4
