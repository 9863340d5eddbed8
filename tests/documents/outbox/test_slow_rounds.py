"""A relay makes progress although its servers are slow or its documents are rewritten."""

from __future__ import annotations

from collections.abc import Sequence

from documents.outbox.entries import TransactionSnapshot
from documents.outbox.events import AppendResult, AppendVerdict, EntryGroup, EventLayerStatus
from documents.outbox.machine import LONG_ROUND_S, RelayMachine, incarnation_of
from documents.outbox.requests import (
    AcquireLease,
    Append,
    EmptySlot,
    Fetch,
    FetchResult,
    InstallationState,
    LeaseResult,
    ListRows,
    MarkPublished,
    ProbeEventLayer,
    ProbeResult,
    Reply,
    Request,
    RequestDone,
    RowList,
    SendTick,
)

WORLD = InstallationState(1, "1:2", "a life")
LOOK = EventLayerStatus(1_000_000, "run", "random", "", "1:2")
COMPLETE = EventLayerStatus(1_000_000, "run", "random", incarnation_of(WORLD, LOOK).hex(), "1:2")
PAGES = 3


class SlowServers:
    """Servers that respond after longer than a long round, with each transaction in several
    pages.
    """

    def __init__(self, xids: Sequence[int]) -> None:
        self.unmarked = list(xids)
        self.ticks = 0
        self._pages = dict.fromkeys(xids, PAGES)

    def reply(self, request: Request) -> Reply:
        match request:
            case AcquireLease():
                return LeaseResult(1, WORLD)
            case ProbeEventLayer():
                return ProbeResult(COMPLETE)
            case ListRows():
                return RowList(
                    True, WORLD, TransactionSnapshot(50, 50, ()), dict.fromkeys(self.unmarked, 9)
                )
            case Fetch(xids=xids):
                self._pages[xids[0]] -= 1
                over = not self._pages[xids[0]]
                group = EntryGroup([(1, b"entry")])
                return FetchResult([group], (xids[0],) if over else (), 0 if over else 1)
            case MarkPublished(xids=xids):
                self.unmarked = [xid for xid in self.unmarked if xid not in xids]
            case SendTick():
                self.ticks += 1
                return AppendResult(AppendVerdict.OK, 1_000_000)
            case Append():
                return AppendResult(AppendVerdict.OK, 1_000_000)
            case _:
                assert isinstance(request, EmptySlot)
        return RequestDone()


def test_transactions_are_published_although_each_reply_is_slow() -> None:
    relay, servers, now_s = RelayMachine(), SlowServers([10, 20]), 0.0
    for _ in range(40):
        now_s = max(now_s, relay.due_s)
        step = relay.wake(now_s)
        while step is not None and now_s < 1_000:
            now_s += 2 * LONG_ROUND_S
            step = relay.receive(step[0], servers.reply(step[1]), now_s)
    assert servers.unmarked == []
    assert servers.ticks > 0


class RewritingServers(SlowServers):
    """Servers with a writer that rewrites the document between any two reads."""

    def __init__(self) -> None:
        super().__init__([10])
        self._newest = 10

    def reply(self, request: Request) -> Reply:
        if not isinstance(request, Fetch):
            return super().reply(request)
        self._newest += 1
        group = EntryGroup([(1, b"entry")])
        return FetchResult([group], request.xids, 0, frozenset([self._newest]))


def test_a_document_that_is_rewritten_between_any_two_reads_does_not_stop_the_relay() -> None:
    relay, servers, now_s = RelayMachine(), RewritingServers(), 0.0
    for _ in range(100):
        now_s = max(now_s, relay.due_s)
        step = relay.wake(now_s)
        rounds_end_s = now_s + LONG_ROUND_S
        while step is not None:
            now_s += 0.005
            assert now_s < rounds_end_s, "the round does not end"
            step = relay.receive(step[0], servers.reply(step[1]), now_s)
    assert servers.unmarked == []
    assert servers.ticks > 0
