"""What is known about versions of a document where documents are stored.

For collections in PostgreSQL, the outbox has a row for each version that was written within about a
minute. For native collections, the log of the storage node is the outbox, and the feed publishes it
in order: whether a version was published follows from the position that the feed has reached.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from documents.outbox.database import relay_pool
from documents.outbox.feed.progress import published_position
from documents.store import facts
from documents.store.database import pool, scope
from documents.store.facts import CollectionFacts
from documents.store.node.snapshot import node_snapshot
from documents.store.outdated_calls import retried
from foundation import event_server
from foundation.postgres import Statement, StatementResult
from foundation.postgres.session import Oid, int8

#: Maximum number of outbox transactions to search: more than a busy minute has.
TRANSACTIONS = 300_000
VERSIONS = 20

_DOCUMENT = Statement(
    "SELECT version, created_at, updated_at, body FROM documents_document "
    "WHERE collection_id = $1 AND key = $2",
    (Oid.UUID, Oid.BYTEA),
)
#: There is no index by key, since it would cost every writer: recent rows are scanned.
_OUTBOX = Statement(
    "SELECT o.version, o.xid, o.created_at, o.batch_hashes IS NOT NULL, "
    "(SELECT min(m.marked_at) FROM documents_outboxmark m WHERE m.xid = o.xid) "
    "FROM documents_outbox o WHERE o.xid >= greatest(3, "
    "pg_snapshot_xmax(pg_current_snapshot())::text::bigint - $5)::text::xid8 "
    "AND o.tenant_id = $1 AND o.collection_id = $2 AND o.key = $3 AND o.version <= $4 "
    "ORDER BY o.version DESC LIMIT $6",
    (Oid.UUID, Oid.UUID, Oid.BYTEA, Oid.INT8, Oid.INT8, Oid.INT8),
)
ANY_VERSION = 2**62


@dataclass(frozen=True, slots=True)
class CurrentDocument:
    """The newest version of a document; without a body it is deleted."""

    version: int
    #: None: the storage node has no time of deletions.
    updated_ms: int | None
    body: bytes | None
    #: The transaction that wrote it; None: only the storage node remembers it.
    xid: int | None = None


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """A version's row of the outbox."""

    version: int
    xid: int
    committed_ms: int
    in_batch: bool
    #: When its transaction was marked as published.
    published_ms: int | None


@dataclass(frozen=True, slots=True)
class FeedProgress:
    """What the feed of native collections has published."""

    #: The position of the log up to which it has; None: it is not determined, because the streams
    #: are new or will be replaced.
    position: int | None


@dataclass(frozen=True, slots=True)
class StoredVersions:
    """The newest version of a document, and what shows which versions were published."""

    newest: CurrentDocument | None
    #: The newest first; none for native collections.
    rows: list[OutboxRow] = field(default_factory=list)
    #: None: the collection is in PostgreSQL.
    feed: FeedProgress | None = None


async def read(
    collection: CollectionFacts, key: bytes, version: int | None, installation: int
) -> StoredVersions:
    """Read what is stored of a document, up to a version."""
    if not collection.is_native:
        return await _in_database(collection, key, version)
    newest = await retried(partial(_in_node, collection, key))
    # After the document: a write that the feed has not reached was not published when it was read.
    position = await published_position(event_server.wire(), installation)
    return StoredVersions(newest, feed=FeedProgress(position))


async def _in_database(
    collection: CollectionFacts, key: bytes, version: int | None
) -> StoredVersions:
    async with pool().session(collection.tenant_id) as session:
        _, result = await session.run(
            [scope(collection.tenant_id), (_DOCUMENT, (collection.raw, key))]
        )
    numbers = (ANY_VERSION if version is None else version, TRANSACTIONS, VERSIONS)
    async with relay_pool().session() as session:
        parameters = (collection.tenant_id.bytes, collection.raw, key, *map(int8, numbers))
        (rows,) = await session.run([(_OUTBOX, parameters)])
    newest = None
    if result.rows:
        newest = CurrentDocument(result.integer(0, 0), result.time_ms(0, 2), result.raw(0, 3))
    return StoredVersions(newest, [_row(rows, number) for number in range(rows.rows)])


def _row(rows: StatementResult, number: int) -> OutboxRow:
    published = rows.raw(number, 4)
    return OutboxRow(
        version=rows.integer(number, 0),
        xid=rows.integer(number, 1),
        committed_ms=rows.time_ms(number, 2),
        in_batch=rows.boolean(number, 3),
        published_ms=None if published is None else rows.time_ms(number, 4),
    )


async def _in_node(collection: CollectionFacts, key: bytes) -> CurrentDocument | None:
    # An attempt follows the installation of a newer definition.
    current = await facts.find(collection.tenant_id, collection.name)
    async with node_snapshot(collection.tenant_id, is_fixed=True) as snapshot:
        parts = [part async for part in snapshot.versions(current, [key])]
        documents = [part async for part in snapshot.documents(current, [key], _reserve)]
    (newest,) = [version for part in parts for version in part]
    times = [document.updated_ms for part in documents for document in part]
    if not newest.version:
        return None
    updated_ms = times[0] if times else None
    return CurrentDocument(newest.version, updated_ms, newest.body, newest.xid or None)


def _reserve(size: int) -> None:
    """One document always fits."""
