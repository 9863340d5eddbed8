"""One at a time may change what Iceberg's catalogue says of a dataset.

The catalogue knows nothing of tokens: whoever was replaced could take back a snapshot that somebody
else has just committed. So a change, the row that commits it, tags and expiry each hold this lock,
and look under it whether they still count. PostgreSQL lets go of it when its holder is gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from django.db import connections, transaction

ALIAS = "relay"
#: The first of the two numbers that name an advisory lock: "RBic" in ASCII.
LOCK_CLASS = 0x52426963
#: A snapshot of many files takes its time, while this transaction has nothing to do. Whoever waits
#: longer for somebody else's tries again later.
_SETTINGS = (
    "SELECT set_config('idle_in_transaction_session_timeout', '600s', true), "
    "set_config('lock_timeout', '20s', true)"
)


@contextmanager
def alone(dataset_id: UUID) -> Iterator[None]:
    """Hold the dataset's lock, and a transaction, until the block ends."""
    with transaction.atomic(using=ALIAS):
        with connections[ALIAS].cursor() as cursor:
            cursor.execute(_SETTINGS)
            cursor.execute(
                "SELECT pg_advisory_xact_lock(%s, hashtext(%s))", (LOCK_CLASS, str(dataset_id))
            )
        yield
