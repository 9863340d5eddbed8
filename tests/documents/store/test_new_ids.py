"""A document whose `_id` was just generated here is inserted without reading first.

If the document exists all the same, nothing is lost: the insert fails, and the group starts over
with a read.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from asgiref.sync import sync_to_async
from django.db.models import F

from documents.models import Collection, Index
from documents.store import writer
from documents.store.database import close_pool, pool, scope
from documents.store.group import run_group
from documents.store.sync import write_all
from documents.store.write import WriteCall
from foundation.errors import ApiError, DuplicateId
from foundation.postgres import PostgresSession, Statement, StatementResult
from foundation.postgres.session import Oid, Step
from foundation.scope import scoped
from rillbase_native import Change, Operation, Operations, Value, id_key
from tests.make import TenantAccount, make_tenant

NAME = "things"
TIMES = Statement(
    "SELECT created_at, updated_at FROM documents_document WHERE key = $1 AND tenant_id = $2",
    (Oid.BYTEA, Oid.UUID),
)


@pytest.fixture
def account() -> TenantAccount:
    account = make_tenant(plan="dedicated")
    with scoped(tenant_id=account.tenant.id):
        Collection.objects.create(name=NAME)
    return account


def new_document() -> Operation:
    return Operation.insert(Value.parse(b'{"a": 1}'))


def write(account: TenantAccount, *operations: Operation, atomic: bool = True) -> list[int | str]:
    """Return the version that each operation produced, or the code of its error."""
    write_call = WriteCall(account.tenant.id, NAME, Operations(operations), atomic=atomic)
    (written,) = write_all([write_call])
    codes = {place: error.code for place, error in written.outcomes.refusals()}
    return [
        codes.get(place) or written.outcomes.change(place).version
        for place in range(len(operations))
    ]


def test_a_new_id_that_is_taken_is_a_duplicate(account: TenantAccount) -> None:
    taken = new_document()
    assert write(account, taken) == [1]
    with pytest.raises(DuplicateId):
        write(account, taken)


def test_only_the_existing_document_is_rejected(account: TenantAccount) -> None:
    taken = new_document()
    write(account, taken)
    ended = write(account, new_document(), taken, new_document(), atomic=False)
    assert ended == [1, "duplicate_id", 1]


def test_a_deleted_id_continues_from_its_version(account: TenantAccount) -> None:
    again = new_document()
    write(account, again)
    assert write(account, Operation.delete(again.id)) == [2]
    assert write(account, again) == [3]


def test_one_group_may_create_change_and_delete_a_document(account: TenantAccount) -> None:
    fresh = new_document()
    update = Operation.update(fresh.id, Value.parse(b'{"$inc": {"a": 1}}'))
    assert write(account, fresh, update, Operation.delete(fresh.id), fresh) == [1, 2, 3, 4]


class CountedTrips:
    """Counts the round trips to PostgreSQL."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        run = PostgresSession.run

        async def counted(session: PostgresSession, steps: Sequence[Step]) -> list[StatementResult]:
            self.count += 1
            return await run(session, steps)

        monkeypatch.setattr(PostgresSession, "run", counted)


async def insert(account: TenantAccount) -> Change:
    """Insert a document on the running loop, which knows PostgreSQL's time after the first
    insert.
    """
    written = await writer.write(WriteCall(account.tenant.id, NAME, Operations([new_document()])))
    return written.outcomes.change(0)


async def test_it_takes_a_single_round_trip(
    account: TenantAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    await insert(account)
    trips, counts = CountedTrips(monkeypatch), list[int]()
    for _ in range(5):
        trips.count = 0
        await insert(account)
        counts.append(trips.count)
    # Once a second, the collection's definition is read again.
    assert min(counts) == 1
    await close_pool()


async def test_so_do_new_documents_of_several_indexed_collections(
    account: TenantAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("ones", "others")
    await make_unique(account, names)
    await insert(account)
    trips, counts = CountedTrips(monkeypatch), list[int]()
    for value in range(5):
        trips.count = 0
        assert await codes_of(account, names, value) == [None, None]
        counts.append(trips.count)
    # Once a second, the collections' definitions are read again.
    assert min(counts) == 1
    # The entries of both collections were written.
    assert await codes_of(account, names, 0) == ["duplicate_key"] * 2
    await close_pool()


async def test_its_times_are_those_in_the_response(account: TenantAccount) -> None:
    await insert(account)
    change = await insert(account)
    shown = json.loads(change.envelope() or b"")
    async with pool().session() as session:
        _, rows = await session.run(
            [scope(account.tenant.id), (TIMES, (id_key(change.id), account.tenant.id.bytes))]
        )
    await close_pool()
    stored = [datetime.fromtimestamp(rows.time_ms(0, column) / 1000, UTC) for column in range(2)]
    assert [datetime.fromisoformat(shown[name]) for name in ("created_at", "updated_at")] == stored
    assert abs((datetime.now(UTC) - stored[0]).total_seconds()) < 60


async def test_a_schema_that_changed_a_moment_ago_applies(account: TenantAccount) -> None:
    await insert(account)
    await change_collection(
        account, schema='{"required": ["b"]}', write_version=F("write_version") + 1
    )
    with pytest.raises(ApiError) as rejected:
        await insert(account)
    assert rejected.value.code == "invalid_document"
    await close_pool()


async def test_a_version_floor_that_was_raised_a_moment_ago_applies(account: TenantAccount) -> None:
    await insert(account)
    await change_collection(account, version_floor=40)
    assert (await insert(account)).version == 41
    await close_pool()


@sync_to_async
def change_collection(account: TenantAccount, **values: object) -> None:
    """Change the collection as another process would."""
    with scoped(tenant_id=account.tenant.id):
        Collection.objects.filter(name=NAME).update(**values)


@sync_to_async
def make_unique(account: TenantAccount, names: Sequence[str]) -> None:
    """Create collections, each with a unique index on `a`."""
    with scoped(tenant_id=account.tenant.id):
        for name in names:
            collection = Collection.objects.create(name=name)
            Index.objects.create(
                collection=collection, name="a", fields=[["a", 1]], unique=True, state="ready"
            )


async def codes_of(account: TenantAccount, names: Sequence[str], value: int) -> list[str | None]:
    """Insert a document into each collection, as one group; return the codes of the errors."""
    document = Value.parse(b'{"a": %d}' % value)
    calls = [
        WriteCall(account.tenant.id, name, Operations([Operation.insert(document)]), atomic=False)
        for name in names
    ]
    codes: list[str | None] = []
    for ended in await run_group(account.tenant.id, calls):
        assert not isinstance(ended, ApiError)
        codes.append(next((error.code for _, error in ended.outcomes.refusals()), None))
    return codes
