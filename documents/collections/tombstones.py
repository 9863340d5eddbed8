"""Removes tombstones of documents after a day.

A tombstone keeps the version of a deleted document, so that a new one with the same `_id` continues
from there. Before tombstones are removed, the collection's floor is raised to the highest version
among them: an `_id` without a row starts above the floor, so no version is ever used twice for one
`_id`.

Writers read the floor under the collection's lock, in a statement begun after acquiring it, and
this holds that lock exclusively: a writer that finds no row for an `_id` has read the floor that
was raised for it. `write_version` need not change for that; nothing that writers have compiled
does.
"""

from __future__ import annotations

import datetime
from uuid import UUID

from django.db import OperationalError, connections, transaction
from django.utils import timezone

from documents.store.locks import lock_exclusively
from foundation.tasks import task
from foundation.tasks.definition import PERIODIC

ALIAS = "relay"
KEEP = datetime.timedelta(hours=24)
#: While this many are removed, the collection's writers wait.
BATCH_ROWS = 1_000
MAX_BATCHES = 50
_LOCK_TIMEOUT = "55P03"

#: The collections of the oldest tombstones.
_DUE = (
    "SELECT DISTINCT collection_id FROM ("
    "SELECT collection_id FROM documents_document WHERE body IS NULL AND updated_at < %s "
    "ORDER BY updated_at LIMIT %s) AS oldest"
)
#: One batch of a collection. A tombstone that has become a document again is skipped.
_PURGE = """
WITH purged AS (
    DELETE FROM documents_document WHERE (collection_id, key) IN (
        SELECT collection_id, key FROM documents_document
        WHERE collection_id = %(collection)s AND body IS NULL AND updated_at < %(before)s
        ORDER BY updated_at LIMIT %(rows)s
    ) AND body IS NULL
    RETURNING version
), raised AS (
    UPDATE documents_collection
    SET version_floor = greatest(version_floor, (SELECT max(version) FROM purged))
    WHERE id = %(collection)s
)
SELECT count(*) FROM purged
"""


@task(name="documents.collections.tombstones", policy=PERIODIC)
def sweep() -> None:
    """Remove tombstones that are older than a day, the oldest first."""
    before = timezone.now() - KEEP
    for _ in range(MAX_BATCHES):
        collections = _due(before)
        if sum(_purge_if_free(collection_id, before) for collection_id in collections) == 0:
            return


def _due(before: datetime.datetime) -> list[UUID]:
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(_DUE, (before, BATCH_ROWS))
        return [collection_id for (collection_id,) in cursor.fetchall()]


def _purge_if_free(collection_id: UUID, before: datetime.datetime) -> int:
    """Purge, but leave a collection whose writers are too busy to the next run."""
    try:
        return purge(collection_id, before)
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", None) != _LOCK_TIMEOUT:
            raise
        return 0


def purge(collection_id: UUID, before: datetime.datetime) -> int:
    """Remove some of a collection's tombstones. Return how many."""
    with transaction.atomic(using=ALIAS):
        lock_exclusively(collection_id, ALIAS)
        with connections[ALIAS].cursor() as cursor:
            cursor.execute(
                _PURGE, {"collection": collection_id, "before": before, "rows": BATCH_ROWS}
            )
            (purged,) = cursor.fetchone()
    return int(purged)
