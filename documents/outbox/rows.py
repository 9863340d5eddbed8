"""The relay's queries to PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple
from uuid import UUID

import psycopg

from documents.outbox.database import BEGIN, COMMIT, DURABLE, OUTBOX_SLOTS, relay_conninfo
from documents.outbox.entries import Image, StreamEntryKind, TransactionSnapshot, encode_image
from documents.outbox.events import EntryGroup
from documents.outbox.machine import LEASE_S
from documents.outbox.marks import mark
from documents.outbox.requests import (
    AcquireLease,
    Fetch,
    FetchResult,
    InstallationState,
    LeaseResult,
    ListRows,
    RowList,
)
from foundation.postgres import PostgresSession, Statement, StatementResult
from foundation.postgres.arrays import int8s, xid8s
from foundation.postgres.session import ROLLBACK, Oid, Step, int8

ANSWER_TIMEOUT_S = 20.0
#: About how much is read, and appended, at once. A larger batch stays whole up to its own limit.
PAGE_BYTES = 4 * 1024 * 1024
MAX_BATCH_BYTES = 32 * 1024 * 1024
#: More than the largest batch has, so that each is listed as a whole.
PAGE_ROWS = 12_000
#: How long rows are retained after they were marked, so that they can be published again.
KEPT_S = 60

#: Null if PostgreSQL's incarnation has no name yet.
_READ_STATE = Statement(
    "SELECT (SELECT epoch FROM documents_installation), "
    "(SELECT string_agg(number || ':' || write_partitions || "
    "coalesce('@' || replace(tenant_id::text, '-', ''), ''), ' ' ORDER BY number) "
    "FROM documents_gridepoch WHERE retired_at IS NULL AND backend = 'postgres'), "
    "(SELECT system_identifier FROM pg_control_system()) || '/' || "
    "left(pg_walfile_name(pg_current_wal_lsn()), 8) || '/' || "
    "(SELECT name FROM documents_databaselife)"
)
_NAME_LIFE = Statement("INSERT INTO documents_databaselife DEFAULT VALUES ON CONFLICT DO NOTHING")
_CLAIM = Statement(
    "UPDATE documents_relaylease "  # noqa: S608 -- a constant
    "SET token = nextval('documents_fencingtoken'), "
    f"expires_at = clock_timestamp() + interval '{LEASE_S} s' "
    "WHERE expires_at < clock_timestamp() RETURNING token"
)
_RENEW = Statement(
    "UPDATE documents_relaylease "  # noqa: S608 -- a constant
    f"SET expires_at = clock_timestamp() + interval '{LEASE_S} s' WHERE token = $1 RETURNING token",
    (Oid.INT8,),
)
_CHECK_LEASE = Statement("SELECT token FROM documents_relaylease WHERE token = $1", (Oid.INT8,))
_RELEASE = Statement(
    "UPDATE documents_relaylease SET expires_at = '-infinity' WHERE token = $1", (Oid.INT8,)
)
#: One statement, so that the snapshot is the one that saw the rows.
_LIST = (
    "SELECT s.snapshot::text, o.xid, o.rows, o.oldest FROM (SELECT pg_current_snapshot() AS "
    "snapshot) s LEFT JOIN (SELECT o.xid, count(*) AS rows, min(o.created_at) AS oldest "
    "FROM documents_outbox o WHERE o.xid >= $1 {unmarked} GROUP BY o.xid) o ON true"
)
_LIST_ALL = Statement(_LIST.format(unmarked=""), (Oid.XID8,))
_LIST_UNMARKED = Statement(
    _LIST.format(
        unmarked="AND NOT EXISTS (SELECT FROM documents_outboxmark m "
        "WHERE m.xid = o.xid AND m.xid >= $1)"
    ),
    (Oid.XID8,),
)
_SIZES = Statement(
    "SELECT o.xid, o.id, "  # noqa: S608 -- a constant
    "coalesce(octet_length(d.body), 0), o.batch_hashes IS NOT NULL "
    "FROM documents_outbox o LEFT JOIN documents_document d "
    "ON d.collection_id = o.collection_id AND d.key = o.key AND d.version = o.version "
    f"WHERE o.xid = ANY($1) AND (o.xid <> $2 OR o.id > $3) ORDER BY o.xid, o.id LIMIT {PAGE_ROWS}",
    (Oid.XID8_ARRAY, Oid.XID8, Oid.INT8),
)
_ROWS = Statement(
    "SELECT o.xid, o.tenant_id, o.collection_id, o.key, o.key_hash, o.version, o.rules_version, "
    # Sorts by `$updated` need the time that reads return.
    "CASE WHEN d.version = o.version THEN d.updated_at ELSE o.created_at END, "
    "o.deleted_id, o.batch_hashes, d.version, "
    "CASE WHEN d.version = o.version THEN d.body END, coalesce(d.created_at, o.created_at), "
    "CASE WHEN d.version > o.version THEN d.xmin::text::int8 END "
    "FROM documents_outbox o LEFT JOIN documents_document d "
    "ON d.collection_id = o.collection_id AND d.key = o.key "
    "WHERE o.xid = ANY($1) AND o.id = ANY($2) ORDER BY o.xid, o.id",
    (Oid.XID8_ARRAY, Oid.INT8_ARRAY),
)


class RowSize(NamedTuple):
    """One row, without its document."""

    xid: int
    id: int
    bytes: int
    is_batch: bool


class OutboxRows:
    """One connection, opened when it is needed and again after it broke.

    Every method may raise `psycopg.Error`.
    """

    def __init__(self) -> None:
        self._session: PostgresSession | None = None
        #: When the oldest unmarked row was written, in ms since 1970; None: there is none.
        self.oldest_ms: int | None = None

    async def claim(self, _: AcquireLease) -> LeaseResult:
        """Take the lease if it is free. Durably: no two holders may have one token."""
        steps: list[Step] = [(BEGIN, ()), (DURABLE, ()), (_NAME_LIFE, ()), (_CLAIM, ())]
        results = await self._run([*steps, (_READ_STATE, ()), (COMMIT, ())])
        claimed, state = results[3], results[4]
        return LeaseResult(claimed.integer(0, 0) if claimed.rows else None, _state_of(state))

    async def release(self, token: int) -> None:
        """Release the lease for the next relay."""
        await self._run([(_RELEASE, (int8(token),))])

    async def list_rows(self, request: ListRows) -> RowList:
        check = _RENEW if request.renew else _CHECK_LEASE
        listing = _LIST_ALL if request.marked_too else _LIST_UNMARKED
        lease, state, listed = await self._run(
            [
                (check, (int8(request.token),)),
                (_READ_STATE, ()),
                (listing, (int8(request.watermark),)),
            ]
        )
        if state.raw(0, 2) is None:
            await self._run([(_NAME_LIFE, ())])
            return await self.list_rows(request)
        rows, written_ms = dict[int, int](), list[int]()
        for row in range(listed.rows):
            if listed.raw(row, 1) is not None:
                rows[listed.integer(row, 1)] = listed.integer(row, 2)
                written_ms.append(listed.time_ms(row, 3))
        if not request.marked_too:
            self.oldest_ms = min(written_ms, default=None)
        return RowList(
            lease.rows > 0, _state_of(state), TransactionSnapshot.parse(listed.text(0, 0)), rows
        )

    async def fetch(self, request: Fetch) -> FetchResult:
        """Read a page. A document that has been written since is not read: its row is superseded.

        Sizes are read first. Documents may be replaced meanwhile, but then they are not read.
        """
        first = request.xids[0]
        parameters = (xid8s(request.xids), int8(first), int8(request.after))
        (sizes,) = await self._run([(_SIZES, parameters)])
        listed = [
            RowSize(
                sizes.integer(row, 0),
                sizes.integer(row, 1),
                sizes.integer(row, 2),
                sizes.boolean(row, 3),
            )
            for row in range(sizes.rows)
        ]
        all_listed = len(listed) < PAGE_ROWS
        page = cut(listed, all_listed=all_listed)
        done, after = progress(request.xids, listed, page, all_listed=all_listed)
        if not page:
            return FetchResult([], done, after)
        xids = xid8s(sorted({size.xid for size in page}))
        (rows,) = await self._run([(_ROWS, (xids, int8s([size.id for size in page])))])
        return FetchResult(_groups(rows, page), done, after, _newer(rows))

    async def mark(self, xids: Sequence[int]) -> None:
        await self._run([mark(xids)])

    async def empty(self, slot: int) -> bool:
        """Empty a slot if all its rows were marked long enough ago; return whether it was.

        The lock waits for every transaction that has written to the slot, so none can commit a row
        after the check; later writers find an empty slot and write to that. Waiting blocks others,
        so the wait is short.
        """
        statements = _EMPTY[slot]
        (result,) = await self._run([(statements.check, ())])
        if not result.boolean(0, 0):
            return False
        try:
            *_, result = await self._run([(step, ()) for step in statements.lock_and_check])
        except psycopg.errors.LockNotAvailable:
            return False
        agreed = result.boolean(0, 0)
        last = [statements.truncate, COMMIT] if agreed else [ROLLBACK]
        await self._run([(step, ()) for step in last])
        return agreed

    async def close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    async def _run(self, steps: Sequence[Step]) -> list[StatementResult]:
        if self._session is None or self._session.broken:
            self._session = await PostgresSession.connect(relay_conninfo())
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                return await self._session.run(steps)
        except TimeoutError:
            self._session = None
            raise psycopg.OperationalError("the database did not respond in time") from None


class _SlotCleanup:
    """The statements that empty one slot.

    Marks are in the slot of the minute in which they were made, so a slot also has marks of the
    last rows of the slot before, and waits until it has lost those.
    """

    def __init__(self, slot: int) -> None:
        rows, marks = f"documents_outbox_{slot}", f"documents_outboxmark_{slot}"
        before = f"documents_outbox_{(slot - 1) % OUTBOX_SLOTS}"
        self.check = Statement(
            f"SELECT EXISTS (SELECT FROM {rows}) "  # noqa: S608 -- a number
            f"AND NOT EXISTS (SELECT FROM {rows} o WHERE NOT EXISTS (SELECT "
            "FROM documents_outboxmark m WHERE m.xid = o.xid "
            f"AND m.marked_at < clock_timestamp() - interval '{KEPT_S} s')) "
            f"AND NOT EXISTS (SELECT FROM {before} o JOIN {marks} m ON m.xid = o.xid)"
        )
        self.lock_and_check = (
            BEGIN,
            Statement("SET LOCAL lock_timeout = '50ms'"),
            Statement(f"LOCK TABLE {rows}, {marks} IN ACCESS EXCLUSIVE MODE"),
            self.check,
        )
        self.truncate = Statement(f"TRUNCATE {rows}, {marks}")


_EMPTY = [_SlotCleanup(slot) for slot in range(OUTBOX_SLOTS)]


def _state_of(result: StatementResult) -> InstallationState:
    return InstallationState(result.integer(0, 0), result.text(0, 1), result.text(0, 2))


def cut(listed: Sequence[RowSize], *, all_listed: bool) -> list[RowSize]:
    """Return the rows of one page: a prefix, with no atomic batch cut in two."""
    page: list[RowSize] = []
    total = 0
    for (xid, is_batch), group in groupby(listed, key=lambda size: (size.xid, size.is_batch)):
        rows = list(group)
        size = sum(row.bytes for row in rows)
        if is_batch and page and not all_listed and xid == listed[-1].xid:
            # The rest of the batch may not be listed.
            return page
        if is_batch and size <= MAX_BATCH_BYTES:
            if page and total + size > PAGE_BYTES:
                return page
            page += rows
            total += size
            continue
        for row in rows:
            if page and total + row.bytes > PAGE_BYTES:
                return page
            page.append(row)
            total += row.bytes
    return page


def progress(
    xids: Sequence[int], listed: Sequence[RowSize], page: Sequence[RowSize], *, all_listed: bool
) -> tuple[tuple[int, ...], int]:
    """Return which transactions have been read completely, and where the next one continues."""
    unread = {size.xid for size in listed[len(page) :]}
    if not all_listed:
        # There are more rows than were listed: those of the last listed transaction, or later ones.
        last = listed[-1].xid
        unread |= {xid for xid in xids if xid >= last}
    done = tuple(xid for xid in xids if xid not in unread)
    after = page[-1].id if page and page[-1].xid in unread else 0
    return done, after


def _groups(rows: StatementResult, page: Sequence[RowSize]) -> list[EntryGroup]:
    """Return the entries, those of a batch together. An oversized batch is not treated as one."""
    sizes: dict[int, int] = {}
    for size in page:
        sizes[size.xid] = sizes.get(size.xid, 0) + size.bytes
    groups: list[EntryGroup] = []
    loose: list[tuple[int, bytes]] = []
    for xid, numbers in groupby(range(rows.rows), key=lambda row: rows.integer(row, 0)):
        members = list(numbers)
        hashes = rows.raw(members[0], 9)
        entries = [(rows.integer(row, 4), _entry(rows, row)) for row in members]
        if hashes is None or sizes.get(xid, 0) > MAX_BATCH_BYTES:
            loose += entries
        else:
            groups.append(EntryGroup(entries, _int4s(hashes)))
    return [*groups, EntryGroup(loose)] if loose else groups


def _newer(rows: StatementResult) -> frozenset[int]:
    """Return the transactions that have rewritten documents of these rows."""
    xids = set[int]()
    for row in range(rows.rows):
        raw, own = rows.raw(row, 13), rows.integer(row, 0)
        if raw is not None and (newer := _full_xid(int.from_bytes(raw, "big"), own)) != own:
            xids.add(newer)
    return frozenset(xids)


def _full_xid(low: int, near: int) -> int:
    """Complete the transaction id whose lower half a row contains, given an id of the same time."""
    return near + (low - near + 2**31) % 2**32 - 2**31


def _entry(rows: StatementResult, row: int) -> bytes:
    version, current = rows.integer(row, 5), rows.raw(row, 10)
    deleted_id, body = rows.raw(row, 8), rows.raw(row, 11)
    is_current = current is not None and int.from_bytes(current, "big", signed=True) == version
    if deleted_id is not None and (is_current or current is None):
        # If the tombstone itself is gone, there can be nothing newer.
        kind, content = StreamEntryKind.DELETE, deleted_id
    elif is_current and body is not None:
        kind, content = StreamEntryKind.PUT, body
    else:
        kind, content = StreamEntryKind.SUPERSEDED, b""
    return encode_image(
        Image(
            kind=kind,
            xid=rows.integer(row, 0),
            tenant_id=UUID(bytes=rows.bytes(row, 1)),
            collection_id=UUID(bytes=rows.bytes(row, 2)),
            version=version,
            rules_version=rows.integer(row, 6),
            created_ms=rows.time_ms(row, 12),
            written_us=rows.time_ms(row, 7) * 1000,
            key=rows.bytes(row, 3),
            body=content,
        )
    )


def _int4s(raw: bytes) -> list[int]:
    """Unpack a one-dimensional array without nulls, in binary form."""
    count = int.from_bytes(raw[12:16], "big") if len(raw) > 12 else 0  # noqa: PLR2004 -- its head
    return [int.from_bytes(raw[20 + 8 * n + 4 : 28 + 8 * n], "big") for n in range(count)]
