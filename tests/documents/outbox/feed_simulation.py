"""A seeded history of a storage node, an event layer, feeds and readers, with all kinds of faults.

Every request takes effect at one point of its duration, and may fail before or after that. The node
is closed cleanly, killed with writes that are not on disk, or put back to an earlier state; its log
is truncated. The event layer is emptied or restarted. Feeds are stopped anywhere, and two may run.

A reader does what a grid node does: it notes the ends of the stream, reads the documents, and then
follows the stream. After each tick it must have exactly the documents that the node had at the
tick's position.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Coroutine, Generator, Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import TypeVar

from documents.outbox.events import (
    AppendResult,
    AppendVerdict,
    EntryGroup,
    EventLayerStatus,
    PackedGroup,
)
from documents.outbox.feed.publisher import (
    MAX_AGE_MS,
    ChangesTruncated,
    FeedCursor,
    FeedInterrupted,
    FeedPublisher,
    LogChanges,
    NodeLogStatus,
)

T = TypeVar("T")

KEYS = 6
EPOCHS = "1001:1"
STEP_US = 20_000
#: Changes that one read returns.
READ_AT_ONCE = 20

Documents = dict[int, int]
"""Versions by key."""


class UntrueTick(AssertionError):
    """A reader does not have what a tick proves."""


class Turn:
    """Lets others run."""

    def __await__(self) -> Generator[None, None, None]:
        yield


@dataclass(frozen=True)
class LoggedChange:
    """A write of a document; without a key, of something else."""

    sequence: int
    key: int | None
    version: int
    time_us: int


@dataclass
class SimulatedNode:
    """The log of a node. Documents are durable at once, other writes are not."""

    names: Callable[[], str]
    run: str = "run-0"
    previous: tuple[str, int] | None = None
    log: list[LoggedChange] = field(default_factory=list)
    #: What was on disk after the last clean end of a run, and this run.
    closed: list[LoggedChange] = field(default_factory=list)
    closed_run: tuple[str, int] | None = None
    #: How often it was rolled back.
    histories: int = 0
    #: Changes up to here are not in the log any more.
    truncated: int = 0

    @property
    def sequence(self) -> int:
        return len(self.log)

    def documents(self, at: int) -> Documents:
        documents: Documents = {}
        for change in self.log[:at]:
            if change.key is not None:
                documents[change.key] = change.version
        return documents

    def write(self, key: int | None, time_us: int) -> None:
        version = self.documents(self.sequence).get(key, 0) + 1 if key is not None else 0
        self.log.append(LoggedChange(self.sequence + 1, key, version, time_us))

    def close_and_open(self) -> None:
        self._reopen(self.log, (self.run, self.sequence))

    def kill_and_open(self) -> None:
        durable = max((c.sequence for c in self.log if c.key is not None), default=0)
        self._reopen(self.log[:durable], None)

    def roll_back(self) -> None:
        """Open what was on disk after the last clean end of a run."""
        self._reopen(list(self.closed), self.closed_run)
        self.histories += 1

    def _reopen(self, log: list[LoggedChange], previous: tuple[str, int] | None) -> None:
        self.log, self.previous, self.truncated = log, previous, min(self.truncated, len(log))
        if previous is not None:
            self.closed, self.closed_run = list(log), previous
        self.run = self.names()


@dataclass(frozen=True)
class SimulatedTick:
    """A tick with the count of entries, itself included."""

    incarnation: bytes
    position: int
    count: int
    cursor: str


@dataclass
class SimulatedEvents:
    """The write stream of one partition."""

    names: Callable[[], str]
    run: str = "valkey-0"
    random: str = ""
    cursor: str = ""
    token: int = 0
    #: Entries with their numbers: those of emptied streams do not come back.
    entries: list[tuple[int, LoggedChange | SimulatedTick]] = field(default_factory=list)
    count: int = 0
    ids: int = 0

    def add(self, entry: LoggedChange | SimulatedTick) -> None:
        self.ids += 1
        self.entries.append((self.ids, entry))

    def lose_end(self, entries: int) -> None:
        """Lose what was appended last, as a restart does."""
        n_dropped = min(entries, len(self.entries))
        if n_dropped:
            del self.entries[-n_dropped:]
        self.count -= n_dropped
        ticks = [entry for _, entry in self.entries if isinstance(entry, SimulatedTick)]
        self.cursor = ticks[-1].cursor if ticks else ""

    def empty(self) -> None:
        self.random, self.cursor, self.token = "", "", 0
        self.entries, self.count = [], 0


class SimulatedServers:
    """Both servers as one feed calls them: implements `FeedServers`."""

    def __init__(self, world: FeedSimulation, token: int) -> None:
        self._world = world
        self._token = token
        #: The run of the node that it is connected to.
        self._run = ""
        #: The position that was read last, and what the node had there.
        self._read: tuple[int, tuple[int, Documents]] = (0, (0, {}))

    async def log_status(self) -> NodeLogStatus:
        def effect() -> NodeLogStatus:
            node = self._world.node
            self._run = node.run
            run, closed_at = node.previous or (None, None)
            return NodeLogStatus(node.run, node.sequence, run, closed_at)

        return await self._world.call(effect)

    async def changes(self, after: int, released: int, wait_ms: int) -> LogChanges:
        world = self._world

        def effect() -> LogChanges | None:
            node = world.node
            if node.run != self._run:
                raise FeedInterrupted("the connection was lost")
            if after > node.sequence or after < node.truncated:
                return None
            part = node.log[after : after + READ_AT_ONCE]
            entries = [(0, pickle.dumps(c)) for c in part if c.key is not None]
            ages_ms = [(world.now_us - change.time_us) // 1000 for change in part]
            of_documents = [
                age_ms for age_ms, c in zip(ages_ms, part, strict=True) if c.key is not None
            ]
            groups = [EntryGroup(entries)] if entries else []
            position = after + len(part)
            self._read = (position, (node.histories, node.documents(position)))
            behind_ms = ages_ms[-1] if ages_ms and position < node.sequence else 0
            return LogChanges(position, groups, max(of_documents, default=0), behind_ms)

        changes = await world.call(effect)
        if changes is None:
            raise ChangesTruncated
        return changes

    async def event_status(self) -> EventLayerStatus:
        def effect() -> EventLayerStatus:
            events = self._world.events
            return EventLayerStatus(
                self._world.now_us, events.run, events.random, "", EPOCHS, events.cursor
            )

        return await self._world.call(effect)

    async def install(self, replaced: str | None) -> AppendResult:
        def effect() -> AppendResult:
            events = self._world.events
            if replaced is not None and replaced != events.random:
                return self._result(AppendVerdict.REBORN)
            if self._token < events.token:
                return self._result(AppendVerdict.OUTRUN)
            if replaced is not None:
                events.empty()
                # No count of entries of the old streams matches.
                events.count = self._world.now_us
            events.token = self._token
            events.random = events.random or events.names()
            return self._result(AppendVerdict.OK)

        return await self._world.call(effect)

    async def append(
        self, stamp_us: int, groups: Sequence[EntryGroup | PackedGroup]
    ) -> AppendResult:
        def effect() -> AppendResult:
            verdict = self._verdict()
            if verdict is AppendVerdict.OK:
                for group in groups:
                    assert isinstance(group, EntryGroup)
                    for _, entry in group.entries:
                        self._world.events.count += 1
                        self._world.events.add(pickle.loads(entry))
            return self._result(verdict)

        return await self._world.call(effect)

    async def tick(
        self, stamp_us: int, status: EventLayerStatus, cursor: FeedCursor
    ) -> AppendResult:
        def effect() -> AppendResult:
            events, verdict = self._world.events, self._verdict()
            if verdict is AppendVerdict.OK and (status.run_id, status.random) != (
                events.run,
                events.random,
            ):
                verdict = AppendVerdict.REBORN
            if verdict is AppendVerdict.OK:
                events.count += 1
                events.cursor = str(cursor)
                tick = SimulatedTick(
                    cursor.incarnation, cursor.position, events.count, events.cursor
                )
                events.add(tick)
                position, truth = self._read
                assert position == cursor.position
                self._world.truth[cursor.incarnation, position] = truth
            return self._result(verdict)

        return await self._world.call(effect)

    def _verdict(self) -> AppendVerdict:
        events = self._world.events
        if not events.random:
            return AppendVerdict.ABSENT
        if self._token < events.token:
            return AppendVerdict.OUTRUN
        events.token = self._token
        return AppendVerdict.OK

    def _result(self, verdict: AppendVerdict) -> AppendResult:
        return AppendResult(verdict, self._world.now_us)


class SimulatedReader:
    """A grid node with one query, which has all documents."""

    def __init__(self, world: FeedSimulation) -> None:
        self._world = world
        self.documents: Documents = {}
        #: The number of ticks that were checked, and the position of the last one.
        self.proofs, self.proven = 0, 0

    async def run(self) -> None:
        while True:
            await self._follow()

    async def _follow(self) -> None:
        """Read the documents, then the stream, until something is missing."""
        world = self._world
        while not world.events.random:
            await Turn()
        event_run, position, number = world.events.run, world.events.ids, world.events.count
        await world.turns()
        node_run, read_at = world.node.run, world.node.sequence
        documents = self.documents = world.node.documents(read_at)
        history = world.node.histories
        await world.turns()
        if world.node.run != node_run:
            # The connection was lost while documents were read.
            return
        incarnation = None
        while world.events.run == event_run and world.events.random:
            entries = [entry for entry in world.events.entries if entry[0] > position]
            for position, entry in entries:  # noqa: B007 -- the last one is the new position
                number += 1
                if isinstance(entry, LoggedChange):
                    key, is_new = entry.key or 0, entry.sequence > read_at
                    if is_new and entry.version > documents.get(key, 0):
                        documents[key] = entry.version
                    continue
                incarnation = incarnation or entry.incarnation
                if (entry.incarnation, entry.count) != (incarnation, number):
                    return
                if entry.position >= read_at:
                    self._check(entry, history)
            await world.turns()

    def _check(self, tick: SimulatedTick, history: int) -> None:
        """Compare. A tick that was sent before the node was rolled back proves nothing about its
        state since; another incarnation follows it.
        """
        of_tick, expected = self._world.truth[tick.incarnation, tick.position]
        # An old tick may be read while newer changes have been.
        if of_tick == history and any(self.documents.get(k, 0) < v for k, v in expected.items()):
            raise UntrueTick(f"{tick} proves {expected}, but the reader has {self.documents}")
        self.proofs += 1
        self.proven = tick.position


class FeedSimulation:
    """All parties."""

    def __init__(self, seed: int, *, has_faults: bool = True) -> None:
        self._random = Random(seed)
        self._names = count(1)
        self._has_faults = has_faults
        self.now_us = 10**15
        self.node = SimulatedNode(self.name)
        self.events = SimulatedEvents(self.name)
        #: What the node had at positions, and in which history, by the incarnation whose ticks
        #: name them.
        self.truth: dict[tuple[bytes, int], tuple[int, Documents]] = {}
        self.readers = [SimulatedReader(self) for _ in range(2)]
        self._feeds: list[Coroutine[None, None, None]] = []
        self._tasks = [reader.run() for reader in self.readers]
        self._tokens = count(1)
        self.begun = 0

    def name(self) -> str:
        return f"name-{next(self._names)}"

    async def turns(self) -> None:
        """Yield to the other parties a few times."""
        for _ in range(self._random.randrange(1, 4)):
            await Turn()

    async def call(self, effect: Callable[[], T]) -> T:
        """Have an effect at some time; it may fail before or after that."""
        await self.turns()
        self._maybe_fail()
        reply = effect()
        await self.turns()
        self._maybe_fail()
        return reply

    def _maybe_fail(self) -> None:
        if self._has_faults and self._random.random() < 0.005:
            raise FeedInterrupted("a reply was lost")

    def _new_incarnation(self) -> bytes:
        self.begun += 1
        return next(self._names).to_bytes(16)

    async def _feed(self) -> None:
        while True:
            servers = SimulatedServers(self, next(self._tokens))
            publisher = FeedPublisher(servers, EPOCHS, self._new_incarnation)
            try:
                await publisher.run(lambda: True)
            except FeedInterrupted:
                await self.turns()

    def run(self, steps: int) -> None:
        """Let everybody run, with faults if there are any."""
        if not self._feeds:
            self._feeds.append(self._feed())
        for _ in range(steps):
            self.now_us += STEP_US
            if self._random.random() < 0.1:
                key = None if self._random.random() < 0.6 else self._random.randrange(KEYS)
                self.node.write(key, self.now_us)
            if self._has_faults and self._random.random() < 0.005:
                self._fault()
            self._random.choice([*self._feeds, *self._tasks]).send(None)

    def settle(self) -> None:
        """Run without faults or writes until both readers are at the end of the log."""
        self._has_faults = False
        for _ in range(3_000):
            self.now_us += STEP_US
            for task in (*self._feeds, *self._tasks):
                task.send(None)
        for reader in self.readers:
            assert reader.proven == self.node.sequence
            assert reader.documents == self.node.documents(self.node.sequence)

    def close(self) -> None:
        for task in (*self._feeds, *self._tasks):
            task.close()

    def _fault(self) -> None:
        node, events = self.node, self.events
        faults: list[Callable[[], object]] = [
            node.close_and_open,
            node.kill_and_open,
            self._roll_back,
            self._truncate,
            self._pause,
            events.empty,
            self._restart_events,
            self._replace_feed,
            self._add_feed,
        ]
        self._random.choice(faults)()

    def _roll_back(self) -> None:
        """Roll the node's volume back, after a tick of this run: a feed that did not notice a run
        cannot tell that there was one.
        """
        cursor = FeedCursor.parse(self.events.cursor)
        if cursor is not None and cursor.node_run == self.node.run:
            self.node.roll_back()

    def _truncate(self) -> None:
        self.node.truncated = self.node.sequence

    def _pause(self) -> None:
        self.now_us += 2 * MAX_AGE_MS * 1000

    def _restart_events(self) -> None:
        """Restart the server with what it has stored."""
        self.events.run = self.name()
        self.events.lose_end(self._random.randrange(8))

    def _replace_feed(self) -> None:
        self._feeds.pop(0).close()
        self._feeds.append(self._feed())

    def _add_feed(self) -> None:
        if len(self._feeds) > 1:
            self._feeds.pop(0).close()
        self._feeds.append(self._feed())
