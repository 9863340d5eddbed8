"""A seeded history of writers, publishers and two relays, with all kinds of faults.

Time is virtual. Every request and reply is delayed; some are lost, before or after they took
effect, some arrive long after their sender has timed out. Relays are paused and killed, both
servers crash, Valkey is emptied and its clock is set. After each tick the simulation checks that it
is true, and at the end, when all is well again, that everything has come out.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count
from random import Random

from documents.outbox.entries import TransactionSnapshot
from documents.outbox.events import AppendResult, AppendVerdict, EntryGroup
from documents.outbox.machine import REPLY_DEADLINE_S, SNAPSHOT_S, RelayMachine
from documents.outbox.requests import (
    AcquireLease,
    Append,
    EmptySlot,
    Fetch,
    Install,
    ListRows,
    MarkPublished,
    ProbeEventLayer,
    ProbeResult,
    Reply,
    Request,
    RequestDone,
    RequestFailed,
    SendTick,
    Trim,
)
from tests.documents.outbox.simulated_servers import (
    PUT,
    Database,
    Events,
    Row,
    Transaction,
)

KEYS = 12
TROUBLE_S = 60.0
#: Both relays may still be waiting for replies that got lost in the last moment of trouble, one
#: after the other, for as long as they have patience.
PEACE_S = 2 * REPLY_DEADLINE_S + 15.0
#: The function admits five seconds; a clock that was set meanwhile adds at most this.
MAX_CLOCK_STEP_S = 2.0
MAX_REAL_AGE_S = 5.0 + 4 * MAX_CLOCK_STEP_S
#: A tick may be on its way for as long as its stamp counts.
MAX_SNAPSHOT_AGE_S = SNAPSHOT_S + MAX_REAL_AGE_S


class Lie(AssertionError):
    """The protocol violated a guarantee."""


class Party:
    """A relay's process."""

    def __init__(self) -> None:
        self.relay = RelayMachine()
        self.paused_until_s = 0.0
        self.generation = 0
        #: When the rows that it last fetched were read.
        self.read_s = 0.0


class Simulation:
    """One history. `run` raises `Lie` if a guarantee is violated."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now_s = 0.0
        self.database = Database(self.random)
        self.events = Events()
        self.parties = [Party(), Party()]
        self.ticks = 0
        self.proven = -1
        self.written = 0
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._begun = False
        #: Rows that were gone when the present life had its first tick.
        self._base: set[int] = set()
        self._read_at: dict[int, float] = {}
        #: When each snapshot was taken, last.
        self._taken_at: dict[TransactionSnapshot, float] = {}

    @property
    def troubled(self) -> bool:
        return self.now_s < TROUBLE_S

    def run(self) -> None:
        for party in self.parties:
            self._wake(party, party.generation)
        self._later(0.1, self._write)
        for trouble, every_s in self._troubles():
            self._recur(trouble, every_s)
        while self._agenda and self._agenda[0][0] < TROUBLE_S + PEACE_S:
            self.now_s, _, act = heapq.heappop(self._agenda)
            act()
        self._check_end()

    def _troubles(self) -> list[tuple[Callable[[], None], float]]:
        return [
            (self._crash_database, 25.0),
            (self._empty_events, 20.0),
            (self._restart_events, 20.0),
            (self._set_clock, 15.0),
            (self._pause_relay, 10.0),
            (self._kill_relay, 15.0),
        ]

    def _recur(self, trouble: Callable[[], None], every_s: float) -> None:
        def strike() -> None:
            if self.troubled:
                trouble()
                self._recur(trouble, every_s)

        self._later(self.random.expovariate(1 / every_s), strike)

    def _later(self, delay_s: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (self.now_s + delay_s, next(self._order), act))

    def _delay(self) -> float:
        """Return the delay of a message: usually short, sometimes longer than any timeout."""
        if self.troubled and self.random.random() < 0.01:
            return self.random.uniform(1, 45)
        return self.random.expovariate(1 / 0.004)

    def _lost(self) -> bool:
        return self.troubled and self.random.random() < 0.01

    # Writers and their publishers.

    def _write(self) -> None:
        if self.now_s > TROUBLE_S + PEACE_S / 3:
            return
        keys = self.random.sample(range(KEYS), self.random.choice([1, 1, 1, 2, 5]))
        transaction = self.database.begin(keys, self.now_s)
        if transaction is not None:
            stamp_us = self.events.time_us(self.now_s) - self.random.randint(0, 5000)
            lasts_s = self._delay() * self.random.choice([1, 1, 1, 200])
            self._later(lasts_s, lambda: self._commit(transaction, stamp_us))
        self._later(self.random.expovariate(10), self._write)

    def _commit(self, transaction: Transaction, stamp_us: int) -> None:
        if self.random.random() < 0.05:
            self.database.abort(transaction)
        elif self.database.commit(transaction):
            self.written += 1
            self._read_at.update((row.id, self.now_s) for row in transaction.rows)
            if self.random.random() < 0.7:
                self._later(self._delay(), lambda: self._publish(transaction, stamp_us))

    def _publish(self, transaction: Transaction, stamp_us: int) -> None:
        groups = [EntryGroup([(row.key, _put(row))]) for row in transaction.rows]
        begun_s = min(self._read_at[row.id] for row in transaction.rows)
        answer = self.events.append(stamp_us, None, groups, self.now_s)
        if answer.verdict is AppendVerdict.OK:
            self._check_age(begun_s)
            if self.random.random() < 0.95:
                self._later(self._delay(), lambda: self._mark(transaction))

    def _mark(self, transaction: Transaction) -> None:
        self.database.mark([transaction.xid], self.now_s)

    # Relays.

    def _wake(self, party: Party, generation: int) -> None:
        if party.generation != generation:
            return
        if self.now_s >= party.paused_until_s:
            self._send(party, party.relay.wake(self.now_s))
        pause_s = min(max(party.relay.due_s - self.now_s, 0.005), 0.2)
        self._later(pause_s, lambda: self._wake(party, generation))

    def _send(self, party: Party, step: tuple[int, Request] | None) -> None:
        if step is None:
            return
        number, request = step
        generation, read_s = party.generation, party.read_s
        if self._lost():
            self._answer(party, generation, number, RequestFailed())
            return
        self._later(self._delay(), lambda: self._arrive(party, generation, number, request, read_s))

    def _arrive(
        self, party: Party, generation: int, number: int, request: Request, read_s: float
    ) -> None:
        reply = self._carry_out(request)
        if isinstance(request, Fetch):
            party.read_s = self.now_s
        elif isinstance(request, Append) and _is_ok(reply):
            self._check_age(read_s)
        if self._lost():
            reply = RequestFailed()
        self._answer(party, generation, number, reply)

    def _answer(self, party: Party, generation: int, number: int, reply: Reply) -> None:
        wait_s = max(self._delay(), party.paused_until_s - self.now_s)

        def hear() -> None:
            if party.generation != generation:
                return
            if self.now_s < party.paused_until_s:
                self._answer(party, generation, number, reply)
            else:
                self._send(party, party.relay.receive(number, reply, self.now_s))

        self._later(wait_s, hear)

    def _carry_out(self, request: Request) -> Reply:
        match request:
            case ProbeEventLayer() | Install() | Append() | Trim() | SendTick():
                return self._at_events(request)
            case _:
                return self._at_database(request)

    def _at_database(
        self, request: AcquireLease | ListRows | Fetch | MarkPublished | EmptySlot
    ) -> Reply:
        database, now_s = self.database, self.now_s
        match request:
            case AcquireLease():
                return database.claim(request, now_s)
            case ListRows():
                listed = database.list_rows(request, now_s)
                self._taken_at[listed.snapshot] = now_s
                return listed
            case Fetch():
                return database.fetch(request)
            case MarkPublished(xids=xids):
                database.mark(xids, now_s)
            case EmptySlot():
                database.empty(request, now_s)
        return RequestDone()

    def _at_events(self, request: ProbeEventLayer | Install | Append | Trim | SendTick) -> Reply:
        events, now_s = self.events, self.now_s
        match request:
            case ProbeEventLayer():
                return ProbeResult(events.read_status(now_s))
            case Install(token=token, epochs=epochs):
                return events.install(token, epochs, f"r{self.random.random()}", now_s)
            case Append():
                return events.append(request.stamp_us, request.token, request.groups, now_s)
            case Trim():
                return events.append(0, None, [], now_s)
            case SendTick():
                answer = events.tick(request, now_s)
                if answer.verdict is AppendVerdict.OK:
                    self._check_tick(request)
                return answer

    # Faults.

    def _crash_database(self) -> None:
        self.database.crash()

    def _empty_events(self) -> None:
        self.events.empty_now()
        self._begin_life()

    def _restart_events(self) -> None:
        self.events.restart(lost=self.random.choice([0, 3, 30, 1000]))
        self._begin_life()

    def _begin_life(self) -> None:
        """From now on, only rows that are still retained can be published again.

        Until the first tick, some may be removed: a slot is being emptied, or the new
        incarnation has not been noticed yet. They were published in an earlier one, long enough
        ago, and readers of the new one start with the contents of the database.
        """
        self._begun = False

    def _set_clock(self) -> None:
        self.events.offset_s += self.random.uniform(-MAX_CLOCK_STEP_S, MAX_CLOCK_STEP_S)

    def _pause_relay(self) -> None:
        self.random.choice(self.parties).paused_until_s = self.now_s + self.random.uniform(0.1, 20)

    def _kill_relay(self) -> None:
        party = self.random.choice(self.parties)
        party.relay = RelayMachine()
        party.generation += 1
        generation = party.generation
        self._later(self.random.uniform(0.1, 3), lambda: self._wake(party, generation))

    # Guarantees.

    def _check_tick(self, tick: SendTick) -> None:
        self.ticks += 1
        taken_s = self._taken_at[tick.snapshot]
        if self.now_s - taken_s > MAX_SNAPSHOT_AGE_S:
            raise Lie(f"a tick of {self.now_s:.3f} s speaks of {taken_s:.3f} s")
        if not self._begun:
            self._begun = True
            self._base = {row.id for row in self.database.emptied}
        # Slots are emptied in any order: an older version may be kept and published as superseded.
        known = dict(self.events.newest)
        for row in self.database.emptied:
            if row.id in self._base:
                known[row.key] = max(row.version, known.get(row.key, 0))
        rows = [*self.database.rows.values(), *self.database.emptied]
        for row in rows:
            if row.id in self._base or not tick.snapshot.sees(row.xid):
                continue
            if known.get(row.key, 0) < row.version:
                raise Lie(f"at {self.now_s:.3f} s a tick vouches for {row}, which is missing")
        self.proven = max(self.proven, tick.snapshot.xmax)

    def _check_age(self, begun_s: float) -> None:
        if self.now_s - begun_s > MAX_REAL_AGE_S:
            raise Lie(f"something was published {self.now_s - begun_s:.1f} s late")

    def _check_end(self) -> None:
        puts: dict[int, int] = {}
        for stream in self.events.streams:
            for key, version, is_put in stream:
                if is_put:
                    puts[key] = max(version, puts.get(key, 0))
        for row in self.database.rows.values():
            newest = self.database.versions[row.key]
            if row.version == newest and puts.get(row.key, 0) < newest:
                raise Lie(f"{row} never came out")
        if self.proven < self.database.snapshot().xmax:
            raise Lie("ticks stopped")


def _is_ok(reply: Reply) -> bool:
    return isinstance(reply, AppendResult) and reply.verdict is AppendVerdict.OK


def _put(row: Row) -> bytes:
    return b"%b %d %d" % (PUT, row.key, row.version)
