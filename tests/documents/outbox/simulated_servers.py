"""PostgreSQL and the event layer as the relay's requests see them, in memory.

They keep what matters to the protocol: transactions that commit in a different order than they
started, snapshots, marks that a crash may lose, transaction ids that a crash may bring back, and a
Valkey that may lose everything or its last second.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from documents.outbox.entries import TransactionSnapshot
from documents.outbox.events import AppendResult, AppendVerdict, EntryGroup, EventLayerStatus
from documents.outbox.machine import LEASE_S, SLOTS
from documents.outbox.requests import (
    AcquireLease,
    EmptySlot,
    Fetch,
    FetchResult,
    InstallationState,
    LeaseResult,
    ListRows,
    RowList,
    SendTick,
)

PARTITIONS = 2
MAX_AGE_S = 5.0
MAX_AHEAD_S = 1.0
#: Shorter than the real ones, so that slots are emptied within a history.
SLOT_S, KEPT_AFTER_MARK_S = 10.0, 15.0
ROWS_A_FETCH = 20
PUT, SUPERSEDED = b"put", b"superseded"


@dataclass(frozen=True)
class Row:
    id: int
    xid: int
    key: int
    version: int
    created_s: float
    is_batch: bool

    @property
    def slot(self) -> int:
        return int(self.created_s / SLOT_S) % SLOTS


@dataclass
class Transaction:
    xid: int
    rows: list[Row]
    committed: bool = False


class Database:
    """Transactions, the outbox, marks and the lease."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.life = 1
        self.next_xid = 100
        self.highest_flushed = 99
        self.running: dict[int, Transaction] = {}
        self.rows: dict[int, Row] = {}
        self.versions: dict[int, int] = {}
        #: The last transaction that wrote each document.
        self.writers: dict[int, int] = {}
        self.marks: dict[int, float] = {}
        self.emptied: list[Row] = []
        self._next_row = 1
        self._token = 0
        self._drawn = 0
        self._expires_s = -1.0

    def begin(self, keys: Sequence[int], now_s: float) -> Transaction | None:
        """Write these documents, or nothing if another transaction holds one of them."""
        held = {row.key for transaction in self.running.values() for row in transaction.rows}
        if held & set(keys):
            return None
        transaction = Transaction(self.next_xid, [])
        self.next_xid += 1
        for key in keys:
            version = self.versions.get(key, 0) + 1
            row = Row(self._next_row, transaction.xid, key, version, now_s, len(keys) > 1)
            transaction.rows.append(row)
            self._next_row += 1
        self.running[transaction.xid] = transaction
        return transaction

    def commit(self, transaction: Transaction) -> bool:
        """Return whether it committed: a crash may have ended it."""
        if self.running.pop(transaction.xid, None) is not transaction:
            return False
        transaction.committed = True
        self.highest_flushed = max(self.highest_flushed, transaction.xid)
        for row in transaction.rows:
            self.rows[row.id] = row
            self.versions[row.key] = row.version
            self.writers[row.key] = row.xid
        return True

    def abort(self, transaction: Transaction) -> None:
        if self.running.get(transaction.xid) is transaction:
            del self.running[transaction.xid]

    def crash(self) -> None:
        """Lose what was not flushed: open transactions, their ids, and the last marks."""
        self.running.clear()
        self.life += 1
        self.next_xid = self.highest_flushed + 1
        latest = sorted(self.marks, key=lambda xid: self.marks[xid])
        for xid in latest[len(latest) - self._random.randint(0, 5) :]:
            del self.marks[xid]

    def mark(self, xids: Sequence[int], now_s: float) -> None:
        kept = {row.xid for row in self.rows.values()}
        for xid in xids:
            if xid in kept:
                self.marks.setdefault(xid, now_s)

    def snapshot(self) -> TransactionSnapshot:
        running = tuple(sorted(self.running))
        return TransactionSnapshot(min(running, default=self.next_xid), self.next_xid, running)

    @property
    def state(self) -> InstallationState:
        return InstallationState(1, f"1:{PARTITIONS}", f"life {self.life}")

    def claim(self, _: AcquireLease, now_s: float) -> LeaseResult:
        if self._expires_s >= now_s:
            return LeaseResult(None, self.state)
        self._drawn += 1
        self._token = self._drawn
        self._expires_s = now_s + LEASE_S
        return LeaseResult(self._token, self.state)

    def list_rows(self, request: ListRows, now_s: float) -> RowList:
        held = self._token == request.token
        if held and request.renew:
            self._expires_s = now_s + LEASE_S
        rows = Counter(
            row.xid
            for row in self.rows.values()
            if row.xid >= request.watermark and (request.marked_too or row.xid not in self.marks)
        )
        return RowList(held, self.state, self.snapshot(), rows)

    def fetch(self, request: Fetch) -> FetchResult:
        """Return a few rows at a time, but an atomic batch as a whole."""
        by_xid: dict[int, list[Row]] = {xid: [] for xid in request.xids}
        for row in self.rows.values():
            if row.xid in by_xid and (row.xid != request.xids[0] or row.id > request.after):
                by_xid[row.xid].append(row)
        requested_rows = [
            row for xid in request.xids for row in sorted(by_xid[xid], key=lambda row: row.id)
        ]
        page = requested_rows[:ROWS_A_FETCH]
        while page and page[-1].is_batch and len(page) < len(requested_rows):
            if requested_rows[len(page)].xid != page[-1].xid:
                break
            page.append(requested_rows[len(page)])
        unread = {row.xid for row in requested_rows[len(page) :]}
        last = page[-1] if page else None
        return FetchResult(
            groups=[EntryGroup([self._entry(row)]) for row in page],
            done=tuple(xid for xid in request.xids if xid not in unread),
            after=last.id if last is not None and last.xid in unread else 0,
            newer=frozenset(self.writers[row.key] for row in page if not self._is_newest(row)),
        )

    def _is_newest(self, row: Row) -> bool:
        return self.versions[row.key] == row.version

    def _entry(self, row: Row) -> tuple[int, bytes]:
        kind = PUT if self._is_newest(row) else SUPERSEDED
        return row.key, b"%b %d %d" % (kind, row.key, row.version)

    def empty(self, request: EmptySlot, now_s: float) -> None:
        current = int(now_s / SLOT_S) % SLOTS
        if request.slot in (current, (current - 1) % SLOTS):
            return
        inside = [row for row in self.rows.values() if row.slot == request.slot]
        inside_open = any(
            row.slot == request.slot for open_ in self.running.values() for row in open_.rows
        )
        old = all(self.marks.get(row.xid, now_s) <= now_s - KEPT_AFTER_MARK_S for row in inside)
        if old and not inside_open:
            self.emptied += inside
            for row in inside:
                del self.rows[row.id]


class Events:
    """The function's rules over streams of one life."""

    def __init__(self) -> None:
        self.offset_s = 1000.0
        self.restarts = 0
        self.empty_now()
        self.restart(lost=0)

    def empty_now(self) -> None:
        """Forget everything, as FLUSHALL does."""
        self.random = self.complete = self.epochs = ""
        self.token = 0
        #: Of each stream its entries as (key, version, is_put).
        self.streams: list[list[tuple[int, int, bool]]] = [[] for _ in range(PARTITIONS)]
        #: The newest version of each document that the streams have with its content.
        self.newest: dict[int, int] = {}

    def restart(self, lost: int) -> None:
        """Restart with another run id, without the last entries."""
        self.restarts += 1
        for stream in self.streams:
            del stream[max(0, len(stream) - lost) :]
        self.newest = {}
        for stream in self.streams:
            for key, version, is_put in stream:
                self._learn(key, version, is_put=is_put)

    def time_us(self, now_s: float) -> int:
        return int((now_s + self.offset_s) * 1e6)

    def read_status(self, now_s: float) -> EventLayerStatus:
        run_id = f"run {self.restarts}"
        return EventLayerStatus(
            self.time_us(now_s), run_id, self.random, self.complete, self.epochs
        )

    def install(self, token: int, epochs: str, random: str, now_s: float) -> AppendResult:
        if token < self.token:
            return AppendResult(AppendVerdict.OUTRUN, self.time_us(now_s))
        self.token, self.epochs = token, epochs
        self.random = self.random or random
        return AppendResult(AppendVerdict.OK, self.time_us(now_s))

    def append(
        self, stamp_us: int, token: int | None, groups: Sequence[EntryGroup], now_s: float
    ) -> AppendResult:
        verdict = self._verdict(stamp_us, token, now_s)
        if verdict is AppendVerdict.OK:
            self.token = max(self.token, token or 0)
            for group in groups:
                for key_hash, raw in group.entries:
                    kind, key, version = raw.split()
                    stream = self.streams[key_hash % PARTITIONS]
                    stream.append((int(key), int(version), kind == PUT))
                    self._learn(int(key), int(version), is_put=kind == PUT)
        return AppendResult(verdict, self.time_us(now_s))

    def _learn(self, key: int, version: int, *, is_put: bool) -> None:
        if is_put:
            self.newest[key] = max(version, self.newest.get(key, 0))

    def tick(self, request: SendTick, now_s: float) -> AppendResult:
        verdict = self._verdict(request.stamp_us, request.token, now_s)
        here = self.read_status(now_s)
        if verdict is AppendVerdict.OK and (
            (here.run_id, here.random) != (request.status.run_id, request.status.random)
        ):
            verdict = AppendVerdict.REBORN
        if verdict is AppendVerdict.OK:
            self.token = request.token
            self.complete = request.incarnation.hex()
        return AppendResult(verdict, self.time_us(now_s))

    def _verdict(self, stamp_us: int, token: int | None, now_s: float) -> AppendVerdict:
        age_s = (self.time_us(now_s) - stamp_us) / 1e6
        if not self.random:
            return AppendVerdict.ABSENT
        if token is not None and token < self.token:
            return AppendVerdict.OUTRUN
        if age_s > MAX_AGE_S:
            return AppendVerdict.LATE
        return AppendVerdict.AHEAD if age_s < -MAX_AHEAD_S else AppendVerdict.OK
