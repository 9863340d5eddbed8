"""While several tenants are active, a tenant's bulk writes run one after the other."""

from __future__ import annotations

import asyncio

import pytest

from documents.models import Collection
from documents.outbox import publisher
from documents.store import database
from documents.store.write import WriteCall
from documents.store.writer import BULK_OPERATIONS, WriteBatcher
from foundation import contention
from foundation.postgres.session import Statement, Step
from foundation.scope import scoped
from rillbase_native import Operation, Operations, Outcomes, Value
from tests.make import TenantAccount, make_tenant

NAME = "things"
WRITES = 4
#: Keeps a transaction open after planning, so that writes that may overlap do.
STAY_OPEN = (Statement("SELECT pg_sleep(0.5)"), ())


@pytest.fixture
def account() -> TenantAccount:
    account = make_tenant(plan="dedicated")
    with scoped(tenant_id=account.tenant.id):
        Collection.objects.create(name=NAME)
    return account


def most_at_once(account: TenantAccount, operations: int, *then: Step) -> int:
    """Return the maximum number of concurrent writes of a tenant between planning and commit."""
    under_way, most = 0, 0

    def planned(_: Outcomes) -> list[Step]:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        serve_two_tenants()
        return list(then)

    def serve_two_tenants() -> None:
        contention.tenants.record("another tenant")
        contention.tenants.record(account.tenant.id)

    async def write(writer: WriteBatcher) -> None:
        nonlocal under_way
        inserts = [Operation.insert(Value.parse(b'{"a": 1}')) for _ in range(operations)]
        await writer.submit(WriteCall(account.tenant.id, NAME, Operations(inserts), also=planned))
        under_way -= 1

    async def write_all() -> None:
        serve_two_tenants()
        writer = WriteBatcher()
        await asyncio.gather(*(write(writer) for _ in range(WRITES)))
        await publisher.close()
        await database.close_pool()

    asyncio.run(write_all())
    return most


def test_bulk_writes_of_one_tenant_take_turns_beside_other_tenants(account: TenantAccount) -> None:
    assert most_at_once(account, BULK_OPERATIONS) == 1


def test_small_transactions_do_not_take_turns(account: TenantAccount) -> None:
    assert most_at_once(account, 2, STAY_OPEN) > 1
