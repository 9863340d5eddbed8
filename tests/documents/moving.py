"""Moves collections of tests between backends."""

from __future__ import annotations

import time

from documents.backend import Backend
from tests.caller import with_key
from tests.documents.collection import CollectionClient

OTHER = {Backend.POSTGRES: Backend.NATIVE, Backend.NATIVE: Backend.POSTGRES}
#: Until a move is complete, and live queries are served in the other backend's grid.
MOVED_S = 120.0


def move(collection: CollectionClient, backend: Backend) -> None:
    """Move a collection, as its tasks do."""
    # Models can be imported once Django is set up.
    from documents.collections import mover

    account = collection.account
    admin = with_key(collection.caller.base, account.admin_key)
    path = f"/api/v1/tenants/{account.slug}/collections/{collection.name}"
    answer = admin.patch(path, {"backend": backend})
    assert answer.status_code == 200, answer.text
    deadline = time.monotonic() + MOVED_S
    while (
        mover.step(account.tenant.pk, collection.collection.pk) is not mover.MoveProgress.FINISHED
    ):
        assert time.monotonic() < deadline
    assert admin.get(path).json()["backend"] == backend
