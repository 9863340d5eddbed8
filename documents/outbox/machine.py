"""The relay as a pure state machine: replies and time in, requests out.

It works in rounds, about four a second, and has one request in flight at a time::

    claim ─▶ status ─▶ (install) ─▶ list ─▶ ( fetch ─▶ append ─▶ mark )* ─▶ tick ─▶ (empty a slot)

Each round's list names a snapshot of the database and the transactions whose rows it saw
unmarked. A transaction that is still unmarked a quarter of a second later is no longer expected
to be published by its writer, so the relay publishes it, after the later writers of its documents
(`documents.outbox.dependency_stack`). Once all that a snapshot saw is marked or sent, a tick may
say so.

There is no cursor: transactions commit in another order than they begin, so nothing may be
concluded from having seen a later one. What can be concluded is this: transactions below a
snapshot's `xmin` are over. If all of their rows are marked, no later list needs to look at them.

Marks count only within one incarnation of the event layer. When that changes, its entries may be
lost, so all retained rows are published again, marked or not, before the next tick.

docs/protocol.md names the interleaving behind each rule.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice

from documents.outbox.dependency_stack import DependencyStack
from documents.outbox.entries import INCARNATION_BYTES, TransactionSnapshot
from documents.outbox.events import AppendResult, AppendVerdict, EventLayerStatus
from documents.outbox.requests import (
    AcquireLease,
    Append,
    EmptySlot,
    Fetch,
    FetchResult,
    Install,
    InstallationState,
    LeaseResult,
    ListRows,
    MarkPublished,
    ProbeEventLayer,
    ProbeResult,
    Reply,
    Request,
    RequestDone,
    RequestFailed,
    RowList,
    SendTick,
    Trim,
)

#: From the beginning of one round to that of the next.
ROUND_S = 0.2
#: How long a writer has to publish its writes, and the age of a snapshot when it is ticked.
GRACE_S = 0.25
#: Readers treat a tick as current, so older snapshots are not ticked. If each reply of the servers
#: takes two seconds, the next list comes after six.
SNAPSHOT_S = 6.0
#: A longer round is interrupted, so that the lease is renewed and ticks are sent while the relay
#: catches up.
LONG_ROUND_S = 1.0
#: How often a relay without the lease tries to claim it.
CLAIM_S = 1.0
#: How often the lease is renewed; it lasts `LEASE_S`.
RENEW_S = 1.0
LEASE_S = 3.0
#: A reply is not awaited for longer than this. Requests give up earlier.
REPLY_DEADLINE_S = 30.0
EMPTY_S = 5.0
SLOTS = 8
#: Maximum number of transactions that are requested at once, and approximate number of rows.
FETCH_XIDS = 1_000
FETCH_ROWS = 2_000
#: Maximum number of snapshots that are kept while the event layer accepts nothing.
MAX_SNAPSHOTS = 8


#: The next request with its number, if there is one.
Step = tuple[int, Request] | None


@dataclass(slots=True)
class SnapshotInProgress:
    """A snapshot and the transactions that must be published before its tick."""

    snapshot: TransactionSnapshot
    #: When it was requested and received: it was taken between the two.
    requested_s: float
    at_s: float
    outstanding: set[int]
    #: Whether a mark settles a transaction. Not while all is published again.
    marks_count: bool


@dataclass(slots=True)
class LayerIncarnation:
    """What is known about one incarnation of the event layer."""

    incarnation: bytes
    status: EventLayerStatus
    #: Whether all retained rows have been published in this incarnation.
    complete: bool
    snapshots: deque[SnapshotInProgress] = field(default_factory=deque)
    #: Published, but not known to be marked.
    sent: set[int] = field(default_factory=set)
    #: How many rows each transaction has, as it was last listed.
    rows: Mapping[int, int] = field(default_factory=dict)
    #: All transactions below have ended and are marked.
    watermark: int = 0


def incarnation_of(state: InstallationState, status: EventLayerStatus) -> bytes:
    """Name the incarnations of both servers and the installation."""
    text = f"{state.installation} {state.database} {status.run_id} {status.random}"
    return sha256(text.encode()).digest()[:INCARNATION_BYTES]


class RelayMachine:
    """One relay, which may or may not hold the lease. `wake` it when `due_s` has come."""

    def __init__(self) -> None:
        self.due_s = 0.0
        self.token: int | None = None
        self.layer: LayerIncarnation | None = None
        self._state: InstallationState | None = None
        #: Valkey's time in its last reply: the stamp of what is read next.
        self._time_us = 0
        self._number = 0
        self._pending_request: Request | None = None
        self._requested_s = 0.0
        self._round_s = 0.0
        self._renewed_s = 0.0
        self._emptied_s = 0.0
        self._slot = 0
        self._backlog: deque[int] = deque()
        self._dependencies = DependencyStack()
        self._after = 0
        #: Of the entries in flight: the stamp, and the transactions that they complete.
        self._stamp_us = 0
        self._done: tuple[int, ...] = ()
        #: Whether this round has published a transaction of the backlog to its end.
        self._advanced = False

    @property
    def unfinished(self) -> int:
        """Number of known transactions that this relay has to publish."""
        return len(self._backlog)

    def wake(self, now_s: float) -> Step:
        """Start a round if one is due and none is in progress."""
        if now_s < self.due_s:
            return None
        return self._begin(now_s)

    def receive(self, number: int, reply: Reply, now_s: float) -> Step:
        """Take the reply to request `number` and return the next request, if there is one."""
        request = self._pending_request
        if number != self._number or request is None:
            return None
        self._pending_request = None
        if isinstance(reply, RequestFailed):
            return self._on_failure(request, now_s)
        if isinstance(reply, AppendResult):
            self._time_us = reply.time_us
        return self._handle_reply(request, reply, now_s)

    def _handle_reply(self, request: Request, reply: Reply, now_s: float) -> Step:
        match request, reply:
            case AcquireLease(), LeaseResult():
                return self._on_claim(reply, now_s)
            case ProbeEventLayer(), ProbeResult():
                return self._on_status(reply.status, now_s)
            case Install(installation=installation), AppendResult():
                if reply.verdict is AppendVerdict.OK:
                    return self._send(ProbeEventLayer(installation), now_s)
                return self._on_rejection(reply.verdict, now_s)
            case ListRows(), RowList():
                return self._on_rows(request, reply, now_s)
            case _:
                return self._continue_round(request, reply, now_s)

    def _continue_round(self, request: Request, reply: Reply, now_s: float) -> Step:
        """Continue a round after its list."""
        match request, reply:
            case Fetch(), FetchResult():
                return self._on_fetch(reply, now_s)
            case Append(), AppendResult():
                return self._on_append(reply, now_s)
            case MarkPublished(xids=xids), RequestDone():
                if self.layer is not None:
                    self.layer.sent.difference_update(xids)
                return self._next_step(now_s)
            case SendTick(snapshot=snapshot), AppendResult():
                return self._on_tick(snapshot, reply, now_s)
            case (Trim(), AppendResult()) | (EmptySlot(), RequestDone()):
                return self._end_round()
            case _:
                raise AssertionError(f"{reply} is not a reply to {request}")

    # The start of a round.

    def _begin(self, now_s: float) -> tuple[int, Request]:
        self._round_s = now_s
        self._backlog.clear()
        self._dependencies.clear()
        self._after = 0
        self._advanced = False
        if self.token is None or self._state is None:
            return self._send(AcquireLease(), now_s)
        return self._send(ProbeEventLayer(self._state.installation), now_s)

    def _on_claim(self, reply: LeaseResult, now_s: float) -> Step:
        if reply.token is None:
            return self._end_round(CLAIM_S)
        self.token = reply.token
        self.layer = None
        self._state = reply.state
        self._renewed_s = now_s
        return self._send(ProbeEventLayer(reply.state.installation), now_s)

    def _on_status(self, status: EventLayerStatus, now_s: float) -> tuple[int, Request]:
        state, token = self._claimed_state()
        self._time_us = status.time_us
        if not status.random or status.epochs != state.epochs:
            return self._send(Install(state.installation, token, state.epochs), now_s)
        incarnation = incarnation_of(state, status)
        if self.layer is None or self.layer.incarnation != incarnation:
            self.layer = LayerIncarnation(incarnation, status, status.complete == incarnation.hex())
        again = not self.layer.complete and not self.layer.snapshots
        renew = now_s - self._renewed_s >= RENEW_S
        watermark = 0 if again else self.layer.watermark
        return self._send(ListRows(token, watermark, again, renew), now_s)

    def _on_rows(self, request: ListRows, reply: RowList, now_s: float) -> Step:
        state, _ = self._claimed_state()
        if not reply.lease_held:
            self.token = None
            return self._end_round(CLAIM_S)
        if request.renew:
            self._renewed_s = now_s
        self._state = reply.state
        if (reply.state.installation, reply.state.database) != (state.installation, state.database):
            self.layer = None
            return self._begin(now_s)
        layer = self._known_incarnation()
        layer.rows = {**layer.rows, **reply.rows} if self._republishing(layer) else reply.rows
        if request.marked_too:
            layer.snapshots.append(
                self._snapshot_of(reply, set(reply.rows), now_s, marks_count=False)
            )
        else:
            self._note_marks(layer, reply, now_s)
        self._plan(layer, now_s)
        return self._next_step(now_s)

    def _republishing(self, layer: LayerIncarnation) -> bool:
        return any(not snapshot.marks_count for snapshot in layer.snapshots)

    def _note_marks(self, layer: LayerIncarnation, reply: RowList, now_s: float) -> None:
        """Settle what has been marked since, and remember this snapshot too."""
        unmarked = reply.rows.keys() - layer.sent
        for snapshot in layer.snapshots:
            if snapshot.marks_count:
                snapshot.outstanding &= unmarked
        if len(layer.snapshots) < MAX_SNAPSHOTS:
            layer.snapshots.append(self._snapshot_of(reply, set(unmarked), now_s, marks_count=True))
        layer.watermark = min(reply.rows.keys() | {reply.snapshot.xmin})

    def _snapshot_of(
        self, reply: RowList, outstanding: set[int], now_s: float, *, marks_count: bool
    ) -> SnapshotInProgress:
        return SnapshotInProgress(
            reply.snapshot, self._requested_s, now_s, outstanding, marks_count
        )

    def _plan(self, layer: LayerIncarnation, now_s: float) -> None:
        """Collect the transactions that writers did not publish in time."""
        outstanding: set[int] = set()
        for snapshot in layer.snapshots:
            if not snapshot.marks_count or now_s - snapshot.at_s >= GRACE_S:
                outstanding |= snapshot.outstanding
        self._backlog.extend(sorted(outstanding))

    # The rest of a round.

    def _next_step(self, now_s: float) -> Step:
        """Take the next step: mark, publish more, tick, empty a slot, or end the round."""
        layer = self.layer
        if layer is None:
            return self._end_round()
        if layer.sent:
            return self._send(MarkPublished(tuple(sorted(layer.sent))), now_s)
        if self._backlog:
            if not self._dependencies and self._may_break_off(now_s):
                return self._begin(now_s)
            return self._send(Fetch(self._first(layer), self._after), now_s)
        provable = self._provable(layer, now_s)
        if provable is not None:
            state, token = self._claimed_state()
            tick = SendTick(
                state.installation,
                self._time_us,
                token,
                layer.status,
                layer.incarnation,
                provable,
            )
            return self._send(tick, now_s)
        if self._is_long(now_s):
            # By the next list the snapshot would be too old to be ticked: a tick goes first.
            return self._end_round()
        return self._empty_next_slot(now_s)

    def _may_break_off(self, now_s: float) -> bool:
        """Return whether the round has lasted long enough to be interrupted. Each makes progress
        and divides no transaction: otherwise a slow list, or a long transaction, would be restarted
        forever.
        """
        return self._is_long(now_s) and self._advanced and self._after == 0

    def _is_long(self, now_s: float) -> bool:
        return now_s - self._round_s > LONG_ROUND_S

    def _provable(self, layer: LayerIncarnation, now_s: float) -> TransactionSnapshot | None:
        """Return the newest snapshot up to which nothing is outstanding.

        One taken before a pause is skipped, with those before it: newer ones will follow.
        """
        proven: list[SnapshotInProgress] = []
        for snapshot in layer.snapshots:
            if snapshot.outstanding or now_s - snapshot.at_s < GRACE_S:
                break
            proven.append(snapshot)
        if not proven or now_s - proven[-1].requested_s <= SNAPSHOT_S:
            return proven[-1].snapshot if proven else None
        for _ in proven:
            layer.snapshots.popleft()
        layer.complete = True
        return None

    def _first(self, layer: LayerIncarnation) -> tuple[int, ...]:
        """Return the next transactions to publish."""
        if self._dependencies:
            return self._dependencies.next_transactions(FETCH_XIDS)
        first: list[int] = []
        rows = 0
        for xid in islice(self._backlog, FETCH_XIDS):
            if xid in self._dependencies.published:
                continue
            rows += layer.rows.get(xid, 1)
            if first and rows > FETCH_ROWS:
                break
            first.append(xid)
        return tuple(first)

    def _on_fetch(self, reply: FetchResult, now_s: float) -> Step:
        """Append what was read. The stamp was taken before the read, so a pause shows.

        If newer transactions must go before it, it is read again later. No other transaction is
        published between two parts of one.
        """
        if self._after == 0 and self._dependencies.push(reply.newer):
            return self._next_step(now_s)
        self._after = reply.after
        self._finish(reply.done)
        if not reply.groups:
            return self._settle(reply.done, now_s)
        state, token = self._claimed_state()
        self._done = reply.done
        return self._send(Append(state.installation, self._stamp_us, token, reply.groups), now_s)

    def _finish(self, done: tuple[int, ...]) -> None:
        self._dependencies.remove_published(done)
        while self._backlog and self._backlog[0] in self._dependencies.published:
            self._backlog.popleft()
            self._dependencies.allow_more()
            self._advanced = True

    def _on_append(self, reply: AppendResult, now_s: float) -> Step:
        if reply.verdict is not AppendVerdict.OK:
            return self._on_rejection(reply.verdict, now_s)
        return self._settle(self._done, now_s)

    def _settle(self, done: tuple[int, ...], now_s: float) -> Step:
        layer = self._known_incarnation()
        layer.sent.update(done)
        for snapshot in layer.snapshots:
            snapshot.outstanding.difference_update(done)
        return self._next_step(now_s)

    def _on_tick(self, snapshot: TransactionSnapshot, reply: AppendResult, now_s: float) -> Step:
        if reply.verdict is not AppendVerdict.OK:
            return self._on_rejection(reply.verdict, now_s)
        layer = self._known_incarnation()
        layer.complete = True
        while layer.snapshots and layer.snapshots.popleft().snapshot is not snapshot:
            pass
        return self._empty_next_slot(now_s)

    def _empty_next_slot(self, now_s: float) -> Step:
        if now_s - self._emptied_s < EMPTY_S:
            return self._end_round()
        self._emptied_s = now_s
        self._slot = (self._slot + 1) % SLOTS
        return self._send(EmptySlot(self._slot), now_s)

    # Failures.

    def _on_rejection(self, verdict: AppendVerdict, now_s: float) -> Step:
        """Handle the event layer's rejection of a request."""
        match verdict:
            case AppendVerdict.OUTRUN:
                self.token = None
                return self._end_round(CLAIM_S)
            case AppendVerdict.ABSENT | AppendVerdict.REBORN:
                self.layer = None
            case _:
                # The stamp is unusable after a pause or a clock correction.
                pass
        return self._end_round()

    def _on_failure(self, request: Request, now_s: float) -> Step:
        if isinstance(request, Append):
            # It may have run out of memory, which only trimming frees.
            return self._send(Trim(request.installation), now_s)
        return self._end_round(CLAIM_S if isinstance(request, AcquireLease) else ROUND_S)

    def _end_round(self, pause_s: float = ROUND_S) -> Step:
        """End the round. The next begins `pause_s` after this one began."""
        self.due_s = self._round_s + pause_s
        return None

    def _send(self, request: Request, now_s: float) -> tuple[int, Request]:
        self._number += 1
        self._pending_request, self._requested_s = request, now_s
        self.due_s = now_s + REPLY_DEADLINE_S
        if isinstance(request, Fetch):
            self._stamp_us = self._time_us
        return self._number, request

    def _claimed_state(self) -> tuple[InstallationState, int]:
        """Return the state that every step after the claim relies on."""
        if self._state is None or self.token is None:
            raise AssertionError("no request is made without a token")
        return self._state, self.token

    def _known_incarnation(self) -> LayerIncarnation:
        if self.layer is None:
            raise AssertionError("no rows are listed without a known incarnation")
        return self.layer
