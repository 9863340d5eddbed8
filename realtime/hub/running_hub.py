"""A hub: the native state machine and its environment. The machine decides. This module runs its
clock, sends its frames and handles its requests.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Protocol, TypeAlias

from redis.exceptions import RedisError

from connections.subscriptions import Subscriber, SubscriptionOutlet
from foundation import event_server
from foundation.environment import environment
from foundation.errors import ApiError
from foundation.event_loop_budget import EventLoopBudget
from foundation.remote_clock import RemoteClock
from realtime.events import layer as events
from realtime.events.layer import QUERY_TTL_MS, GridLayer
from realtime.grid.layout import GridEpoch
from realtime.hub.logs import LogEntry, LogReader
from realtime.registration.registration import CollectionReference
from rillbase_native import (
    FailQuery,
    FetchDocuments,
    Hub,
    LogUnevaluated,
    RecheckAccess,
    RegisterQuery,
    RenewQuery,
    ReplayLog,
    UnregisterQuery,
    query_partition,
)

log = logging.getLogger(__name__)

TICK_S = 0.05
ALIVE_S = 3.0
#: A hub that did not renew its lease for this long may have lost its queries.
FORGOTTEN_S = QUERY_TTL_MS / 1000
#: Frames that are taken at once, and requests that are started in one iteration of the event loop,
#: which delays all connections.
FRAMES_AT_ONCE, REQUESTS_AT_ONCE = 32, 16
OUTBOX_FRAMES = 1_000
OUTBOX_BYTES = 8 * 1024 * 1024

#: The requests of a hub that are served one by one. `UnregisterQuery` is served in batches.
HubRequest: TypeAlias = (
    RegisterQuery
    | RenewQuery
    | FetchDocuments
    | RecheckAccess
    | FailQuery
    | LogUnevaluated
    | ReplayLog
)
#: Serves one request of a hub.
Serve = Callable[["RunningHub", HubRequest], Awaitable[None]]


class HubSubscription(Protocol):
    """A subscription that is attached to the machine."""

    @property
    def outlet(self) -> SubscriptionOutlet: ...

    @property
    def subscriber(self) -> Subscriber: ...

    @property
    def source(self) -> CollectionReference: ...

    async def judge(self, subscriber: Subscriber) -> None:
        """Continue with the caller's current permissions, under the rules in force."""

    def note(self, error: ApiError) -> None:
        """Record in the tenant's error log why the subscription ends."""

    def ended(self) -> None:
        """Called when its last frame has been handed out: it is no longer attached."""


class RunningHub:
    """A hub that is attached to a grid."""

    def __init__(
        self, name: str, grid: GridEpoch, serve: Serve, *, memory_bytes: int, trace_bytes: int
    ) -> None:
        self.name = name
        self.grid = grid
        self.layer = _layer(grid)
        self.hub = Hub(
            environment().rillbase_secret_key.get_secret_value().encode(),
            installation=grid.installation,
            epoch=grid.epoch,
            write_partitions=grid.write_partitions,
            outbox_frames=OUTBOX_FRAMES,
            outbox_bytes=OUTBOX_BYTES,
            memory_bytes=memory_bytes,
            trace_bytes=trace_bytes,
        )
        #: By the machine's number.
        self.attached: dict[int, HubSubscription] = {}
        self.clock = RemoteClock(time.monotonic)
        self._serve = serve
        self._readers: dict[int, LogReader] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._requests: deque[HubRequest] = deque()
        self._pumping = False

    async def start(self) -> None:
        """Read the logs from their current ends, and start the clock."""
        # From here on, the loss of registered queries is detected.
        await self.layer.hub_alive(self.name)
        self._read(await self._ends_of_logs(self.grid, self.layer))
        self.spawn(self._keep_ticking())
        self.spawn(self._keep_alive())

    async def move(self, grid: GridEpoch) -> None:
        """Follow another grid: read its notifications from now on, and register every query."""
        layer = _layer(grid)
        ends = await self._ends_of_logs(grid, layer)
        for reader in self._readers.values():
            await reader.close()
        self.grid, self.layer = grid, layer
        self.hub.moved(
            installation=grid.installation,
            epoch=grid.epoch,
            write_partitions=grid.write_partitions,
            query_partitions=grid.query_partitions,
        )
        self._read(ends)
        self.wake()

    async def _ends_of_logs(self, grid: GridEpoch, layer: GridLayer) -> list[str]:
        log_ends = []
        for partition in range(grid.query_partitions):
            ends = await layer.ends(grid.write_partitions, partition)
            self.clock.observe(ends.time_us)
            log_ends.append(ends.log)
        return log_ends

    def _read(self, ends: list[str]) -> None:
        self._readers = {}
        for partition, end in enumerate(ends):
            stream = events.log(self.grid.prefix, self.grid.epoch, partition)
            self._readers[partition] = LogReader(stream, end, self._log_handler(partition))

    async def close(self) -> None:
        for reader in self._readers.values():
            await reader.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def spawn(self, work: Coroutine[None, None, None]) -> None:
        """Run something concurrently."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def wake(self) -> None:
        """Schedule sending frames and handling requests."""
        if not self._pumping:
            self._pumping = True
            asyncio.get_running_loop().call_soon(self._pump)

    def subscriptions(self, query: bytes) -> list[HubSubscription]:
        """Return the subscriptions of a query."""
        numbers = self.hub.subscriptions(query)
        return [attached for n in numbers if (attached := self.attached.get(n)) is not None]

    def drained(self, subscription: int, frames: int, size_bytes: int) -> None:
        """Record what has been sent to a client."""
        self.set_trace_time()
        self.hub.drained(subscription, frames, size_bytes)
        self.wake()

    async def release(self, queries: Iterable[bytes]) -> None:
        """Release queries unless they are watched again: requests are not served in order."""
        grid, layer = self.grid, self.layer
        unwatched: dict[int, list[bytes]] = defaultdict(list)
        for query in queries:
            if self.hub.query(query) is None:
                unwatched[query_partition(query, grid.query_partitions)].append(query)
        for partition, unwatched_queries in unwatched.items():
            await layer.unregister(partition, self.name, *unwatched_queries)

    def _pump(self) -> None:
        # Until then, frames that have left need not wake it.
        try:
            self._send_frames()
        finally:
            self._pumping = False
        self._begin_requests()
        if self._requests or self.hub.has_frames():
            self.wake()

    def _begin_requests(self) -> None:
        unregistered = []
        for request in self.hub.take_requests():
            if isinstance(request, UnregisterQuery):
                unregistered.append(request.query)
            else:
                self._requests.append(request)
        # A client that disconnects may have had thousands of queries.
        if unregistered:
            self.spawn(self._release(unregistered))
        for _ in range(min(len(self._requests), REQUESTS_AT_ONCE)):
            self.spawn(self._served(self._requests.popleft()))

    def _send_frames(self) -> None:
        budget = EventLoopBudget()
        while not budget.is_spent and (frames := self.hub.poll(FRAMES_AT_ONCE)):
            for frame in frames:
                attached = self.attached.get(frame.subscription)
                if attached is None:
                    continue
                attached.outlet.send(frame.text)
                if frame.is_last:
                    del self.attached[frame.subscription]
                    attached.ended()

    async def _release(self, queries: list[bytes]) -> None:
        try:
            await self.release(queries)
        except RedisError as error:
            log.info("queries are kept until this server's lease ends: %s", error)

    async def _served(self, request: HubRequest) -> None:
        try:
            await self._serve(self, request)
        except Exception:
            log.exception("could not serve the hub's request %s", type(request).__name__)
        self.wake()

    def _log_handler(self, partition: int) -> Callable[[list[LogEntry]], None]:
        def handle_entries(entries: list[LogEntry]) -> None:
            try:
                self.set_trace_time()
                self.hub.read(partition, entries)
            except ValueError:
                log.exception("an entry of the notification log cannot be read")
                self.hub.lost(partition)
            self.wake()

        return handle_entries

    def now_us(self) -> int:
        """Return Valkey's time, if it is known."""
        now_us = self.clock.now_us()
        return time.time_ns() // 1000 if now_us is None else now_us

    def set_trace_time(self) -> None:
        """Give the hub the time of what it is about to be told, for its traces."""
        self.hub.set_trace_time(self.now_us())

    async def _keep_ticking(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            self.hub.tick(self.now_us())
            self.wake()

    async def _keep_alive(self) -> None:
        """Renew this hub's lease on its queries; register them again if it was lost."""
        held_s = time.monotonic()
        # The event layer reports this once, and it remains true until it is handled.
        forgotten = False
        while True:
            try:
                is_held = await self.layer.hub_alive(self.name)
                now_s = time.monotonic()
                forgotten |= not is_held or now_s - held_s > FORGOTTEN_S
                held_s = now_s
                if forgotten:
                    await self._register_again()
                    forgotten = False
                ends = await self.layer.ends(self.grid.write_partitions, 0)
                self.clock.observe(ends.time_us)
            except RedisError as error:
                log.debug("the event layer is unavailable: %s", error)
            await asyncio.sleep(ALIVE_S)

    async def _register_again(self) -> None:
        log.warning("the event layer has lost this server's queries; they are registered again")
        layer = self.layer
        for partition in list(self._readers):
            self.hub.forgotten(partition, await layer.registered_queries(partition, self.name))
            self.wake()


def _layer(grid: GridEpoch) -> GridLayer:
    return grid.layer(event_server.wire())
