"""Reads single documents for a sort node, whose rows refer to them. A worker reads them, as for
renewals, and the reads count against the same budget. Every app server with subscribers of the
query receives the request; one of them has it handled.
"""

from __future__ import annotations

import asyncio
import logging
import time
from uuid import UUID

from redis.exceptions import RedisError

from documents.store.facts import ConcurrentDefinitionChange
from documents.store.lookups import read_versions
from documents.store.queries import opened
from foundation.errors import ApiError
from foundation.limits import Limit
from foundation.tasks import task
from foundation.tasks.app import app
from foundation.tasks.definition import PERIODIC
from realtime.events.layer import GridLayer
from realtime.grid.layout import GridEpoch
from realtime.registration.registration import (
    CollectionReference,
    RulesChanged,
    compare,
    sides_of_query,
)
from realtime.registration.renewals import of_all, send_to_grids
from rillbase_native import LiveQuery, Question, query_partition

log = logging.getLogger(__name__)

TASK = "realtime.fetch"
#: Requests of one query. They are cheap: only the missing keys are read.
QUERY_PER_S, QUERY_BURST = 10.0, 20
#: A request without a reply is repeated under another name after this time.
ANSWERED_IN_S = 5.0
#: Maximum size of one reply. The rest is requested again.
MOST_BYTES = 8 * 1024 * 1024


def turn_limits(question: Question) -> list[Limit]:
    """Return the limit that allows only one app server to handle a request."""
    return [Limit("fetch-turn", question.name, 1 / ANSWERED_IN_S, 1)]


def limits(query: bytes) -> list[Limit]:
    """Return the limits of a request."""
    return [Limit("fetch", query.hex(), QUERY_PER_S, QUERY_BURST), of_all()]


def dispatch(epoch: int, query: LiveQuery, source: CollectionReference, question: str) -> None:
    """Pass a request to a worker. Blocks, and raises the exceptions of the broker's client."""
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
    """Read what a sort node requested and send it. The node repeats the request if this fails."""
    query = LiveQuery.read(bytes.fromhex(definition))
    request = Question.read(bytes.fromhex(question))
    source = CollectionReference(UUID(tenant_id), collection)

    async def work(layer: GridLayer, grid: GridEpoch) -> None:
        await fetch(layer, grid, query, source, request)

    try:
        asyncio.run(send_to_grids(epoch, work))
    except (ApiError, RulesChanged, RedisError) as error:
        log.info("documents that a query looks up could not be read: %s", error)


async def fetch(
    layer: GridLayer,
    grid: GridEpoch,
    query: LiveQuery,
    source: CollectionReference,
    question: Question,
) -> None:
    """Read documents in one snapshot and send them to the sort node."""
    sides = await sides_of_query(query, source)
    async with opened(source.tenant_id, source.collection, query.filter(), None) as reader:
        compare(reader.collection, query.collection, query.rules_version)
        now_ms = int(time.time() * 1000)
        read = await read_versions(reader.snapshot, sides, question.keys, MOST_BYTES, now_ms)
    if read is None:
        raise ConcurrentDefinitionChange
    documents = [
        [(version.key, version.version, version.xid, version.body) for version in side]
        for side in read
    ]
    partition = query_partition(query.hash, grid.query_partitions)
    await layer.answer(partition, query.hash, question.answer(documents))
