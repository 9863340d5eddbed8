"""Synchronous code writes with a separate event loop, and closes everything that belongs to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from documents.models import Collection
from documents.outbox import publisher
from documents.store.sync import write_all
from documents.store.write import WriteCall
from foundation.scope import scoped
from rillbase_native import Operation, Operations, Value
from tests.make import make_tenant

NAME = "things"
# Enough writes for the publisher to have connected meanwhile.
WRITES = 200


def test_a_serving_process_keeps_no_socket_of_a_synchronous_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(publisher._Process, "publishes", True)
    tenant = make_tenant(plan="dedicated").tenant
    with scoped(tenant_id=tenant.id):
        Collection.objects.create(name=NAME)
    created = [Operations([Operation.insert(Value.parse(b"{}"))]) for _ in range(WRITES)]
    before = open_files()
    write_all([WriteCall(tenant.id, NAME, item, atomic=True) for item in created])
    assert open_files() == before


def open_files() -> int:
    return len(list(Path("/dev/fd").iterdir()))
