"""Single documents read because a sort node asked for them: its rows refer to them, and it knows
nothing of them.

The reading is done by a worker, as renewals are, and counts against the same budget. Every app
server that watches the query hears of a question; one of them has it answered.
"""

from __future__ import annotations

import asyncio
import logging
import time
from uuid import UUID

from redis.exceptions import RedisError

from documents.store.lookups import read_versions
from documents.store.queries import opened
from documents.store.reads import KeptChanging
from foundation.errors import ApiError
from foundation.limits import Limit
from foundation.tasks import task
from foundation.tasks.app import app
from foundation.tasks.definition import PERIODIC
from realtime.events.layer import GridLayer, query_partition
from realtime.grid.layout import GridEpoch
from realtime.registration.initial_rows import take_snapshot
from realtime.registration.registration import (
    CollectionReference,
    OtherRules,
    compare,
    sides_of_query,
)
from realtime.registration.renewals import of_all, with_grids
from rillbase_native import LiveQuery, Question

log = logging.getLogger(__name__)

TASK = "realtime.fetch"
#: Questions of one query. They are cheap: as many keys are looked at as are missing.
QUERY_PER_S, QUERY_BURST = 10.0, 20
#: A question that was not answered is asked again under another name, after this time.
ANSWERED_IN_S = 5.0
#: What one answer holds. The rest is asked for again.
MOST_BYTES = 8 * 1024 * 1024


def turn(question: Question) -> list[Limit]:
    """Return what only one app server gets: the right to have a question answered."""
    return [Limit("fetch-turn", question.name, 1 / ANSWERED_IN_S, 1)]


def limits(query: bytes) -> list[Limit]:
    """Return what one answer counts against."""
    return [Limit("fetch", query.hex(), QUERY_PER_S, QUERY_BURST), of_all()]


def dispatch(epoch: int, query: LiveQuery, source: CollectionReference, question: str) -> None:
    """Hand a question to a worker. Blocks, and raises whatever the broker's client raises."""
    arguments = {
        "epoch": epoch,
        "definition": query.definition().hex(),
        "tenant_id": str(source.tenant_id),
        "collection": source.collection,
        "question": question,
    }
    app.send_task(TASK, kwargs=arguments, retry=False)


@task(name=TASK, policy=PERIODIC, quiet=True)
def answer(epoch: int, definition: str, tenant_id: str, collection: str, question: str) -> None:
    """Read what a sort node asks for and tell it. It asks again if this fails."""
    query = LiveQuery.read(bytes.fromhex(definition))
    asked = Question.read(bytes.fromhex(question))
    source = CollectionReference(UUID(tenant_id), collection)

    async def tell(layer: GridLayer, grid: GridEpoch) -> None:
        await fetch(layer, grid, query, source, asked)

    try:
        asyncio.run(with_grids(epoch, tell))
    except (ApiError, OtherRules, RedisError) as gone:
        log.info("documents that a query looks up could not be read: %s", gone)


async def fetch(
    layer: GridLayer,
    grid: GridEpoch,
    query: LiveQuery,
    source: CollectionReference,
    question: Question,
) -> None:
    """Read documents in one snapshot and tell the sort node."""
    sides = await sides_of_query(query, source)
    async with opened(source.tenant_id, source.collection, query.filter(), None) as reading:
        compare(reading.collection, query.collection, query.rules_version)
        snapshot = await take_snapshot(reading.session)
        now_ms = int(time.time() * 1000)
        read = await read_versions(
            reading.session, sides, question.keys, snapshot.xmax, MOST_BYTES, now_ms
        )
    if read is None:
        raise KeptChanging
    documents = [[(one.key, one.version, one.xid, one.body) for one in side] for side in read]
    partition = query_partition(query.hash, grid.query_partitions)
    await layer.answer(partition, query.hash, question.answer(documents))
