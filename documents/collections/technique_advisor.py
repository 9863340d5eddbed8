"""Chooses the techniques of automatic indexes of native collections.

The storage node counts how collections and indexes are used. About every hour, the counters of a
collection are read; the difference to the previous ones is how an index was used since, from which
`technique_advice` names the technique that suits it. If the same technique has been at least
`MIN_GAIN` times as good for a day, in each period in which the index was used, an index with it is
built beside the present one, and takes its place as soon as it is ready.
"""

from __future__ import annotations

import datetime
import logging
import time
from dataclasses import asdict
from uuid import UUID

from django.db import models
from django.db.models import Q
from django.utils import timezone

from documents.backend import Backend
from documents.collections.actions import replace_index
from documents.collections.indexes import TTL_INDEX, fields_of
from documents.collections.node_upkeep import (
    CollectionReading,
    StoredSize,
    counters_of,
    sizes_of,
)
from documents.collections.technique_advice import IndexUse, TechniqueAdvice, advise
from documents.index_fields import is_spatial
from documents.models import Collection, Index
from documents.store.locks import lock_exclusively
from documents.technique import DeclaredTechnique
from foundation.api.rendering import timestamp
from foundation.errors import Unavailable
from foundation.json_types import JsonObject, JsonValue
from foundation.scope import scoped
from foundation.tasks import task
from foundation.tasks.definition import PERIODIC

log = logging.getLogger(__name__)

ALIAS = "relay"
PERIOD = datetime.timedelta(hours=1)
#: For so long, a technique must have been better.
OBSERVED = datetime.timedelta(hours=24)
MIN_GAIN = 1.5
#: A run ends after this time; collections that remain are next.
RUN_S = 20.0


@task(name="documents.collections.techniques", policy=PERIODIC)
def sweep() -> None:
    """Advise on collections whose counters were read an hour ago, the longest ago first."""
    deadline = time.monotonic() + RUN_S
    now = timezone.now()
    rows = _automatic(Index.unscoped.using(ALIAS))
    rows = rows.filter(Q(counters_at=None) | Q(counters_at__lte=now - PERIOD))
    oldest_first = rows.order_by("counters_at", "number")
    collections = dict.fromkeys(oldest_first.values_list("tenant_id", "collection_id"))
    for tenant_id, collection_id in collections:
        if time.monotonic() > deadline:
            return
        try:
            advise_on(tenant_id, collection_id, now)
        except Unavailable as error:
            log.warning("the storage node is unavailable, so no index is advised on: %s", error)
            return


def advise_on(tenant_id: UUID, collection_id: UUID, now: datetime.datetime) -> None:
    """Advise on the automatic indexes of a collection by their use since the last time. Replace
    those whose technique has not suited them for long.
    """
    counters = counters_of(tenant_id, collection_id)
    size = sizes_of(tenant_id, [collection_id])[collection_id]
    overdue: dict[int, DeclaredTechnique] = {}
    with scoped(tenant_id=tenant_id):
        rows = Index.objects.filter(collection=collection_id).order_by("number")
        for index in _automatic(rows):
            is_counted = counters is not None and index.number in counters.indexes
            if counters is not None and is_counted and not is_spatial(fields_of(index)):
                _advise(index, counters, size, now)
            index.counters_at = now
            index.save(update_fields=["counters", "counters_at", "advice"])
            technique = _overdue(index.advice, now)
            if technique is not None:
                overdue[index.number] = technique
    for number, technique in overdue.items():
        # By itself, because the collection's lock comes before those of rows.
        with scoped(tenant_id=tenant_id):
            _replace(collection_id, number, technique)


def _automatic(indexes: models.QuerySet[Index]) -> models.QuerySet[Index]:
    """Return those whose technique may be replaced."""
    automatic = indexes.filter(
        technique=DeclaredTechnique.AUTO,
        unique=False,
        state=Index.State.READY,
        collection__state=Collection.State.ACTIVE,
        collection__move_stage="",
        collection__backend=Backend.NATIVE,
    )
    return automatic.exclude(name=TTL_INDEX)


def _advise(
    index: Index, counters: CollectionReading, size: StoredSize, now: datetime.datetime
) -> None:
    """Renew the advice for an index, unless it was used too little to tell."""
    present: JsonObject = {
        "run": counters.run,
        "reads": counters.reads,
        "writes": counters.writes,
        **counters.indexes[index.number]._asdict(),
    }
    previous, index.counters = index.counters or {}, present
    # Another run of the node counts from zero.
    is_same_run = previous.get("run") == present["run"]
    use = IndexUse.between(
        previous if is_same_run else {},
        present,
        documents=size.documents,
        document_bytes=size.bytes,
    )
    advice = advise(use, index.technique_in_use)
    if advice is not None:
        index.advice = _record(advice, use, index.advice, now)


def _record(
    advice: TechniqueAdvice, use: IndexUse, earlier: JsonObject | None, now: datetime.datetime
) -> JsonObject:
    """Return advice as it is stored and shown."""
    since: JsonValue = None
    if advice.gain >= MIN_GAIN:
        is_same = earlier is not None and earlier["technique"] == advice.technique
        since = (earlier or {}).get("since") if is_same else None
        since = since or timestamp(now)
    shown = asdict(use)
    del shown["documents"], shown["blocks"]
    return {
        "technique": advice.technique,
        "gain": round(advice.gain, 2),
        "since": since,
        "use": shown,
    }


def _overdue(advice: JsonObject | None, now: datetime.datetime) -> DeclaredTechnique | None:
    """Return the technique that has been better for long enough."""
    since = None if advice is None else advice["since"]
    if advice is None or since is None:
        return None
    is_overdue = datetime.datetime.fromisoformat(str(since)) <= now - OBSERVED
    return DeclaredTechnique(str(advice["technique"])) if is_overdue else None


def _replace(collection_id: UUID, number: int, technique: DeclaredTechnique) -> None:
    """Build a replacement of an index, unless there is one already or the index has changed."""
    lock_exclusively(collection_id)
    rows = Index.objects.filter(number=number, replacements=None)
    index = _automatic(rows).select_related("collection").first()
    if index is not None and index.technique_in_use != technique:
        fields = {"index": number, "technique": technique}
        log.info("an index is rebuilt with another technique", extra=fields)
        replace_index(index.collection, index, technique)
