"""The lock under which the Iceberg catalogue of a dataset may be changed.

The catalogue does not check fencing tokens: a process that was replaced could revert a snapshot
that its successor has just committed. So commits (with the rows that record them), tagging and
expiry take this advisory lock, and check that they still own the dataset while holding it.
PostgreSQL releases the lock when the holder's connection ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from django.db import connections, transaction

ALIAS = "relay"
#: The first of the two keys of the advisory lock: "RBic" in ASCII.
LOCK_CLASS = 0x52426963
#: The transaction is idle while a snapshot of many files is written. A caller that times out
#: waiting for the lock retries later.
_SETTINGS = (
    "SELECT set_config('idle_in_transaction_session_timeout', '600s', true), "
    "set_config('lock_timeout', '20s', true)"
)


@contextmanager
def catalogue_lock(dataset_id: UUID) -> Iterator[None]:
    """Hold the dataset's lock, and a transaction, until the block ends."""
    with transaction.atomic(using=ALIAS):
        with connections[ALIAS].cursor() as cursor:
            cursor.execute(_SETTINGS)
            cursor.execute(
                "SELECT pg_advisory_xact_lock(%s, hashtext(%s))", (LOCK_CLASS, str(dataset_id))
            )
        yield
