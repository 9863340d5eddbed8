"""The subscription kind for aggregates."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field

from aggregates import facts, refusals
from aggregates.facts import READ, AggregateFacts
from aggregates.live import frames
from aggregates.live import subscribe_request as wanting
from aggregates.live.feed import FeedWatch, InitialAnswer, JsonRows, feeds
from aggregates.live.rows import SubscriptionRows
from aggregates.live.subscribe_request import AggregateSubscribeRequest
from aggregates.live.tokens import AggregateResumePoint, AggregateTokens
from connections.subscriptions import Subscriber, SubscriptionOutlet
from foundation.errors import ApiError, NotFound
from foundation.json_types import JsonObject
from rillbase_native import Value
from storage_engine.node.client import CALL_DEADLINE_S
from storage_engine.node.refusals import away
from storage_engine.node.wire import CommandRejected

#: How much may be in flight to a client; later changes are merged into one difference.
OUTBOX_FRAMES = 1_000
OUTBOX_BYTES = 8 * 1024 * 1024
DROPPED = "dropped"


class AggregateSubscriptionKind:
    """The subscription kind that `aggregate` names."""

    member = "aggregate"

    async def open(
        self, subscriber: Subscriber, message: Value, outlet: SubscriptionOutlet
    ) -> AggregateSubscription:
        """Open a subscription, or raise why it is rejected."""
        facts.allow(subscriber.principal, READ)
        wanted = wanting.read(message)
        aggregate = await facts.find(subscriber.tenant.id, wanted.aggregate)
        aggregate.require_rows()
        tokens = AggregateTokens(aggregate, subscriber.principal.actor, wanted.query)
        watched = AggregateSubscription(
            aggregate, wanted, outlet, subscriber, tokens, SubscriptionRows(aggregate.measures)
        )
        await watched.begin()
        return watched


@dataclass(slots=True, eq=False)
class AggregateSubscription:
    """One subscription to an aggregate's rows."""

    aggregate: AggregateFacts
    wanted: AggregateSubscribeRequest
    outlet: SubscriptionOutlet
    subscriber: Subscriber
    tokens: AggregateTokens
    rows: SubscriptionRows
    state: str = "starting"
    #: Events sent, including those before a resumption.
    events: int = 0
    position: int = 0
    #: Frames and bytes not yet sent to the client.
    on_the_way: list[int] = field(default_factory=lambda: [0, 0])
    over: bool = False
    watching: FeedWatch | None = None
    #: The first answer, until it has arrived.
    first: asyncio.Future[None] | None = None

    async def begin(self) -> None:
        """Watch from the beginning, or resume from a token."""
        position = None
        if self.wanted.resume is not None:
            point = self.tokens.read(self.wanted.resume)
            self.events, position = point.events, point.position
        self.first = asyncio.get_running_loop().create_future()
        feed = feeds.of(self.aggregate.tenant_id)
        self.watching = feed.watch(self.aggregate, self.wanted.query, position, self)
        try:
            async with asyncio.timeout(CALL_DEADLINE_S):
                await self.first
        except BaseException as failed:
            self.close()
            if isinstance(failed, TimeoutError):
                raise away() from None
            raise

    def answered(self, answer: InitialAnswer) -> None:
        """Handle the node's answer to the watch."""
        self.position = answer.position
        if self.state == "starting":
            self._begin(answer)
        else:
            self._resume(answer)
        self.state = "live"
        if self.first is not None and not self.first.done():
            self.first.set_result(None)

    def _begin(self, answer: InitialAnswer) -> None:
        if answer.rows is not None:
            if self.wanted.resume is not None:
                self.events = 0
                self._send(frames.reset(self._id, "changed"))
            self._result(answer.rows)
        self._send(frames.ready(self._id, self._token()))

    def _resume(self, answer: InitialAnswer) -> None:
        """Report what has changed while the node was away."""
        if answer.rows is not None and self.rows.is_complete:
            self.rows.replace(answer.rows)
        elif answer.rows is not None:
            # The client holds rows that were never seen here, so which have gone is unknown.
            self.events = 0
            self._send(frames.reset(self._id, "changed"))
            self._result(answer.rows)
        self._send(frames.status(self._id, "live", "the storage node is available again"))
        self._send_differences()

    def _result(self, rows: JsonRows) -> None:
        self.rows.replace(rows)
        for frame in frames.results(self._id, self.rows.all(), self._token()):
            self._send(frame)

    def changed(self, position: int, rows: JsonRows, removed: JsonRows) -> None:
        """Handle rows that have changed or been removed."""
        self.position = position
        self.rows.change(rows, removed)
        self._send_differences()

    def stale(self) -> None:
        """Warn the client that changes may be late."""
        self.state = "stale"
        self._send(frames.status(self._id, "stale", "the storage node is unavailable"))

    def refused(self, refused: CommandRejected) -> None:
        """End, and report the reason."""
        if refused.code == DROPPED:
            self._end(NotFound("The aggregate has been deleted."))
        else:
            self._end(refusals.as_api_error(refused))

    async def judge(self, subscriber: Subscriber) -> None:
        """Continue with the caller's current permissions."""
        self.subscriber = subscriber
        try:
            facts.allow(subscriber.principal, READ)
        except ApiError as refused:
            self._end(refused)

    def close(self) -> None:
        """Stop sending."""
        self.over = True
        if self.watching is not None:
            self.watching.close()
            self.watching = None

    def unsubscribed(self) -> None:
        """Do nothing: no state is kept for a client that does not reconnect."""

    def drained(self, frames: int, size_bytes: int) -> None:
        """Account for what has been sent to the client."""
        self.on_the_way[0] -= frames
        self.on_the_way[1] -= size_bytes
        if not self.over and self.state == "live":
            self._send_differences()

    def figures(self) -> JsonObject:
        """Describe the subscription for the tenant's members."""
        return {
            "aggregate": self.aggregate.name,
            "query": json.loads(self.wanted.query),
            "query_hash": "",
            "state": self.state,
            "events": self.events,
            "waiting": max(0, self.on_the_way[0]),
            "lag_ms": None,
        }

    def _send_differences(self) -> None:
        """Send all differences as one group, if there is room."""
        if not self._has_room():
            return
        differences = self.rows.take()
        for place, difference in enumerate(differences):
            self.events += 1
            txn: dict[str, object] | None = None
            if len(differences) > 1:
                txn = {"id": str(self.position), "index": place, "count": len(differences)}
            frame = frames.event(self._id, difference, self.events, txn)
            is_last = place == len(differences) - 1
            self._send(frames.with_token(frame, self._token()) if is_last else frame)

    def _has_room(self) -> bool:
        waiting, size_bytes = self.on_the_way
        return waiting < OUTBOX_FRAMES and size_bytes < OUTBOX_BYTES

    @property
    def _id(self) -> str:
        return self.subscriber.name

    def _token(self) -> str:
        return self.tokens.write(AggregateResumePoint(self.position, self.events))

    def _send(self, frame: bytes) -> None:
        self.on_the_way[0] += 1
        self.on_the_way[1] += len(frame)
        self.outlet.send(frame)

    def _end(self, error: ApiError) -> None:
        if self.over:
            return
        if self.first is not None and not self.first.done():
            self.first.set_exception(error)
            return
        self.close()
        self.outlet.send(frames.end(self._id, error))
        self.outlet.ended()
