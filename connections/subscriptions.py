"""How connections admit, open and hold subscriptions, whatever is subscribed to.

Products register their kinds of subscription. A kind is selected by the member of `subscribe` that
names its source: `collection`, `topic`, `aggregate`. Products must not import each other, so
`rillbase_server` decides which kinds are registered.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from connections import frames
from connections.callers import ConnectionCaller
from connections.outgoing import Sent
from foundation.bulk_budget import BulkBudget
from foundation.errors import ApiError, IdInUse, InvalidBody, TooManySubscriptions
from foundation.event_loop_budget import EventLoopBudget
from foundation.json_types import JsonObject
from rillbase_native import Value
from tenants.credentials.facts import TenantFacts
from tenants.principals import Principal

log = logging.getLogger(__name__)

#: Subscriptions of one connection.
MAX_OPEN = 1_000
#: A client may send thousands at once; those of one batch are opened at the same time.
MAX_BATCH = 32

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Subscriber:
    """Who subscribes, and under which name on which connection."""

    principal: Principal
    tenant: TenantFacts
    connection: str
    #: The name that the client chose for the subscription.
    name: str
    #: Documents are sent as canonical Extended JSON.
    canonical: bool = False


class SubscriptionOutlet(Protocol):
    """The destination of the frames of one subscription."""

    def send(self, frame: bytes) -> None:
        """Queue a frame, JSON text. It is kept until the client has received it."""

    def ended(self) -> None:
        """Forget the subscription: the frame that says so has been sent."""


class Subscription(Protocol):
    """One subscription that has started."""

    def close(self) -> None:
        """Send nothing more, not even a notification of the end."""

    def unsubscribed(self) -> None:
        """Called when the client has unsubscribed and will not resume. `close` follows."""

    def drained(self, frames: int, size_bytes: int) -> None:
        """Called with how many of the frames and bytes have left for the client."""

    async def judge(self, subscriber: Subscriber) -> None:
        """Continue with the caller's current scopes and claims. End if they do not allow it."""

    def describe(self) -> JsonObject:
        """Return its source and its query, for the tenant's members. They rarely change."""

    def figures(self) -> JsonObject:
        """Return its state and its counts, for the tenant's members."""


class SubscriptionKind(Protocol):
    """Something that can be subscribed to."""

    @property
    def member(self) -> str:
        """The member of `subscribe` that names the source."""

    async def open(
        self, subscriber: Subscriber, message: Value, outlet: SubscriptionOutlet
    ) -> Subscription:
        """Start a subscription, or raise. Frames may be sent before this returns."""


class SubscriptionKinds:
    """The kinds of an installation."""

    def __init__(self, *kinds: SubscriptionKind) -> None:
        self._by_member = {kind.member: kind for kind in kinds}

    def of(self, message: Value) -> SubscriptionKind:
        """Return the kind of a `subscribe` message, or raise unless it names one source."""
        kinds = [kind for member, kind in self._by_member.items() if message.get(member)]
        if len(kinds) != 1:
            names = ", ".join(f"`{member}`" for member in self._by_member)
            raise InvalidBody(f"A subscription must name exactly one of: {names}.")
        return kinds[0]


class FrameQueue(Protocol):
    """The frames that wait to be sent to one client."""

    def put(self, frame: bytes, sent: Sent | None = None) -> None:
        """Queue a frame; `sent` is called with its size once it has left."""


class OpenSubscription:
    """The outlet of one subscription. It may end before it has started."""

    def __init__(
        self,
        name: str,
        queue: FrameQueue,
        request_id: str,
        forget: Callable[[OpenSubscription], None],
    ) -> None:
        self.name = name
        self.id = secrets.token_hex(8)
        self.begun_at = time.time()
        #: Called when it no longer counts against its tenant's quota; None if it does not count.
        self._uncount: Callable[[], None] | None = None
        self._queue = queue
        self._request_id = request_id
        self._forget = forget
        self._subscription: Subscription | None = None
        self._over = False
        #: Frames and bytes that left before the subscription existed.
        self._early = (0, 0)

    def counted(self, uncount: Callable[[], None]) -> None:
        """Record that it counts against its tenant's quota until it calls `uncount`, once."""
        self._uncount = uncount
        if self._over:
            self.uncount()

    def uncount(self) -> None:
        """Stop counting it against the quota. Idempotent."""
        uncount, self._uncount = self._uncount, None
        if uncount is not None:
            uncount()

    def send(self, frame: bytes) -> None:
        """Send a frame of the subscription."""
        if not self._over:
            self._queue.put(frame, self._sent)

    def ended(self) -> None:
        """Release the name: the subscription has sent its last frame."""
        self._over = True
        self.uncount()
        self._forget(self)

    def begun(self, subscription: Subscription) -> None:
        """Attach the subscription that was opened under the name."""
        if self._over:
            subscription.close()
            return
        self._subscription = subscription
        if self._early[0]:
            subscription.drained(*self._early)

    def end(self, error: ApiError | None) -> None:
        """End the subscription and send the client the error; None: the client unsubscribed."""
        if self._over:
            return
        if error is None and self._subscription is not None:
            self._subscription.unsubscribed()
        self.close()
        self._queue.put(frames.end(self.name, error, self._request_id))

    def close(self) -> None:
        """End the subscription without notifying the client."""
        self._over = True
        self.uncount()
        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None

    async def judge(self, subscriber: Subscriber) -> None:
        """Continue with the caller's current rights."""
        if self._subscription is not None:
            await self._subscription.judge(subscriber)

    @property
    def subscription(self) -> Subscription | None:
        """The subscription behind the name, if it has started and not ended."""
        return self._subscription

    def _sent(self, size_bytes: int) -> None:
        if self._subscription is not None:
            self._subscription.drained(1, size_bytes)
        elif not self._over:
            self._early = (self._early[0] + 1, self._early[1] + size_bytes)


@dataclass(slots=True, eq=False)
class PendingStart:
    """A subscription that waits to be admitted."""

    subscription: OpenSubscription
    caller: ConnectionCaller
    #: Number of calls that it counts as: 0 if its request has already been counted.
    calls: int
    verdict: asyncio.Future[None]


#: Admits several starts of one credential, or raises why not all of them can be admitted.
Step = Callable[[Sequence[PendingStart]], Awaitable[None]]


class Starts:
    """Admits the subscriptions of one event loop that are about to start.

    A start counts against its tenant's rate of calls and its quota, which Valkey keeps. Starts of
    one credential that wait at the same time share these two calls. Starts are bulk work: while
    other tenants are active they wait for the budget (foundation/bulk_budget.py).
    """

    def __init__(self, budget: BulkBudget, steps: Sequence[Step]) -> None:
        self._budget = budget
        self._steps = steps
        self._waiting: dict[Hashable, list[PendingStart]] = {}
        self._pumps: set[asyncio.Task[None]] = set()

    async def wait(self, caller: ConnectionCaller | None) -> None:
        """Wait until the budget lets a tenant start another subscription."""
        if caller is not None:
            await self._budget.wait(caller.tenant.id)

    async def metered(self, caller: ConnectionCaller | None, work: Coroutine[object, None, T]) -> T:
        """Start a subscription at the expense of its tenant."""
        return await self._budget.metered(caller and caller.tenant.id, work)

    async def admit(
        self, subscription: OpenSubscription, caller: ConnectionCaller, *, calls: int = 0
    ) -> None:
        """Wait until a subscription is admitted, or raise why it is not.

        `calls`: what it counts as against the rate of calls, if it came without a counted request.
        """
        verdict: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        start = PendingStart(subscription, caller, calls, verdict)
        credential = (caller.tenant.id, caller.principal.credential_id)
        if (waiting := self._waiting.get(credential)) is not None:
            waiting.append(start)
        else:
            self._waiting[credential] = [start]
            pump = asyncio.create_task(self._pump(credential, caller.tenant.id))
            self._pumps.add(pump)
            pump.add_done_callback(self._pumps.discard)
        try:
            await verdict
            # A whole batch is admitted at once, but its subscriptions are opened one by one.
            await self._budget.wait(caller.tenant.id)
        except BaseException:
            # The start may have been counted before it was cancelled.
            subscription.uncount()
            raise

    async def _pump(self, credential: Hashable, tenant: Hashable) -> None:
        """Admit what waits for one credential, until nothing does."""
        waiting = self._waiting[credential]
        try:
            while waiting:
                await self._budget.wait_for_batch(tenant)
                batch, waiting[:MAX_BATCH] = waiting[:MAX_BATCH], []
                await self._budget.metered(tenant, self._serve(batch))
        finally:
            del self._waiting[credential]
            for start in waiting:
                start.verdict.cancel()

    async def _serve(self, batch: list[PendingStart]) -> None:
        for step in self._steps:
            batch = await _run_step(batch, step)
        for start in batch:
            if not start.verdict.done():
                start.verdict.set_result(None)


async def _run_step(batch: list[PendingStart], step: Step) -> list[PendingStart]:
    """Apply a step to starts, each alone if it fails for all together. Return those that passed."""
    batch = [start for start in batch if not start.verdict.done()]
    if not batch:
        return []
    try:
        await step(batch)
    except ApiError as error:
        if len(batch) > 1:
            return [passed for start in batch for passed in await _run_step([start], step)]
        _refuse(batch, error)
    except Exception as error:
        log.exception("subscriptions could not be admitted")
        _refuse(batch, error)
    else:
        return batch
    return []


def _refuse(batch: Sequence[PendingStart], error: Exception) -> None:
    """Notify those that still wait: a client may have disconnected while the step ran."""
    for start in batch:
        if not start.verdict.done():
            start.verdict.set_exception(error)


class ConnectionSubscriptions:
    """The subscriptions of one connection, by the names that its client chose."""

    __slots__ = ("_ended", "_kinds", "_open", "_queue", "_request_id", "_starts", "_subscriber")

    def __init__(
        self,
        subscriber: Callable[[ConnectionCaller, str], Subscriber],
        request_id: str,
        kinds: SubscriptionKinds,
        starts: Starts,
        queue: FrameQueue,
        ended: Callable[[], None],
    ) -> None:
        """`ended` is called whenever one of them has ended."""
        self._subscriber = subscriber
        self._request_id = request_id
        self._kinds = kinds
        self._starts = starts
        self._queue = queue
        self._ended = ended
        self._open: dict[str, OpenSubscription] = {}

    def __iter__(self) -> Iterator[OpenSubscription]:
        return iter(list(self._open.values()))

    def reserve(self, name: str) -> OpenSubscription:
        """Reserve a name, or raise why a subscription cannot have it."""
        if name in self._open:
            raise IdInUse(f"The connection already has a subscription {name!r}.")
        if len(self._open) >= MAX_OPEN:
            raise TooManySubscriptions(f"A connection may have at most {MAX_OPEN} subscriptions.")
        self._open[name] = OpenSubscription(name, self._queue, self._request_id, self._forget)
        return self._open[name]

    async def open(
        self, subscription: OpenSubscription, message: Value, caller: Callable[[], ConnectionCaller]
    ) -> None:
        """Admit a subscription and open it. `caller` raises if its credentials have expired."""
        try:
            await self._starts.admit(subscription, caller(), calls=1)
            kind, subscriber = (
                self._kinds.of(message),
                self._subscriber(caller(), subscription.name),
            )
            subscription.begun(await kind.open(subscriber, message, subscription))
        except BaseException:
            self._forget(subscription)
            raise

    def end(self, name: str, error: ApiError | None) -> bool:
        """End one, None: because its client unsubscribed; return whether it existed."""
        subscription = self._open.pop(name, None)
        if subscription is None:
            return False
        subscription.end(error)
        self._ended()
        return True

    def end_all(self, error: ApiError) -> None:
        """End all of them, and send their client the error."""
        ended, self._open = self._open, {}
        for each in ended.values():
            each.end(error)

    async def judge(self, caller: ConnectionCaller) -> None:
        """Continue with the caller's current rights."""
        for subscription in self:
            await subscription.judge(self._subscriber(caller, subscription.name))

    async def close(self) -> None:
        """Close all of them without notice, a few at a time: there may be very many."""
        remaining, self._open = list(self._open.values()), {}
        budget = EventLoopBudget()
        try:
            while remaining:
                remaining.pop().close()
                await budget.yield_if_spent()
        finally:
            for each in remaining:
                each.close()

    def _forget(self, subscription: OpenSubscription) -> None:
        subscription.uncount()
        if self._open.get(subscription.name) is subscription:
            del self._open[subscription.name]
            self._ended()
