"""The subscription kind for aggregates."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass

from aggregates import facts, refusals
from aggregates.facts import READ, AggregateFacts
from aggregates.live import frames, subscribe_request
from aggregates.live.feed import FeedWatch, InitialAnswer, JsonRows, feeds
from aggregates.live.rows import SubscriptionRows
from aggregates.live.subscribe_request import AggregateSubscribeRequest
from aggregates.live.tokens import AggregateResumePoint, AggregateTokens
from connections import frames as connection_frames
from connections.subscriptions import Subscriber, SubscriptionOutlet
from foundation.errors import ApiError, NotFound
from foundation.json_types import JsonObject
from rillbase_native import Value
from storage_engine.node.node_subscription import NodeSubscription
from storage_engine.node.wire import CommandRejected

DROPPED = "dropped"
#: Facts are at most a second old.
BUILT_POLL_S = 1.0


class AggregateSubscriptionKind:
    """The subscription kind that `aggregate` names."""

    member = "aggregate"

    async def open(
        self, subscriber: Subscriber, message: Value, outlet: SubscriptionOutlet
    ) -> AggregateSubscription:
        """Open a subscription, or raise why it is rejected."""
        facts.allow(subscriber.principal, READ)
        request = subscribe_request.read(message)
        aggregate = await facts.find(subscriber.tenant.id, request.aggregate)
        if not aggregate.is_being_built:
            aggregate.require_rows()
        tokens = AggregateTokens(aggregate, subscriber.principal.actor, request.query)
        watched = AggregateSubscription(
            outlet, subscriber, aggregate, request, tokens, SubscriptionRows(aggregate.measures)
        )
        await watched.begin()
        return watched


@dataclass(slots=True, eq=False)
class AggregateSubscription(NodeSubscription):
    """One subscription to an aggregate's rows."""

    aggregate: AggregateFacts
    request: AggregateSubscribeRequest
    tokens: AggregateTokens
    rows: SubscriptionRows
    position: int = 0
    watching: FeedWatch | None = None
    #: Waits until a view has rows.
    building: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Watch from the beginning, or resume from a token. The rows of a view that is being built
        follow once it is.
        """
        if self.aggregate.is_being_built:
            self.building = asyncio.create_task(self._watch_once_built())
            return
        position = None
        if self.request.resume is not None:
            point = self.tokens.read(self.request.resume)
            self.events, position = point.events, point.position
        acceptance = self.expect_acceptance()
        feed = feeds.of(self.aggregate.tenant_id)
        self.watching = feed.watch(self.aggregate, self.request.query, position, self)
        await self.wait_for_acceptance(acceptance)

    async def _watch_once_built(self) -> None:
        try:
            while self.aggregate.is_being_built:
                await asyncio.sleep(BUILT_POLL_S)
                self.aggregate = await facts.find(self.aggregate.tenant_id, self.aggregate.name)
            self.aggregate.require_rows()
        except ApiError as error:
            self.end(error)
            return
        feed = feeds.of(self.aggregate.tenant_id)
        self.watching = feed.watch(self.aggregate, self.request.query, None, self)

    def answered(self, answer: InitialAnswer) -> None:
        """Handle the node's answer to the watch."""
        self.position = answer.position
        if self.state == "starting":
            self._begin(answer)
        else:
            self._resume(answer)
        self.state = "live"
        self.accepted()

    def _begin(self, answer: InitialAnswer) -> None:
        if answer.rows is not None:
            if self.request.resume is not None:
                self.events = 0
                self.send(connection_frames.reset(self.id, "changed"))
            self._result(answer.rows)
        self.send(connection_frames.ready(self.id, self._token()))

    def _resume(self, answer: InitialAnswer) -> None:
        """Report what has changed while the node was unavailable."""
        if answer.rows is not None and self.rows.is_complete:
            self.rows.replace(answer.rows)
        elif answer.rows is not None:
            # The client holds rows that were never seen here, so which have gone is unknown.
            self.events = 0
            self.send(connection_frames.reset(self.id, "changed"))
            self._result(answer.rows)
        self.send(connection_frames.status(self.id, "live", "the storage node is available again"))
        self._send_differences()

    def _result(self, rows: JsonRows) -> None:
        self.rows.replace(rows)
        for frame in connection_frames.results(
            self.id, self.rows.all(), frames.item, frames.PART, self._token()
        ):
            self.send(frame)

    def changed(self, position: int, rows: JsonRows, removed: JsonRows) -> None:
        """Handle rows that have changed or been removed."""
        self.position = position
        self.rows.change(rows, removed)
        self._send_differences()

    def refused(self, refused: CommandRejected) -> None:
        """End, and report the reason."""
        if refused.code == DROPPED:
            self.end(NotFound("The aggregate has been deleted."))
        else:
            self.end(refusals.as_api_error(refused))

    def authorize(self) -> None:
        facts.allow(self.subscriber.principal, READ)

    def stop_following(self) -> None:
        if self.building is not None:
            self.building.cancel()
            self.building = None
        if self.watching is not None:
            self.watching.close()
            self.watching = None

    def unsubscribed(self) -> None:
        """Do nothing: no state is kept for a client that does not reconnect."""

    def drained(self, frames: int, size_bytes: int) -> None:
        """Record how much has been sent to the client, and send what has changed meanwhile."""
        NodeSubscription.drained(self, frames, size_bytes)
        if not self.over and self.state == "live":
            self._send_differences()

    def describe(self) -> JsonObject:
        query = json.loads(self.request.query)
        return {"aggregate": self.aggregate.name, "query": query, "query_hash": ""}

    def _send_differences(self) -> None:
        """Send all differences as one group, if there is room."""
        if not self.has_room():
            return
        differences = self.rows.take()
        for index, difference in enumerate(differences):
            self.events += 1
            txn: dict[str, object] | None = None
            if len(differences) > 1:
                txn = {"id": str(self.position), "index": index, "count": len(differences)}
            frame = frames.event(self.id, difference, self.events, txn)
            is_last = index == len(differences) - 1
            self.send(frames.with_token(frame, self._token()) if is_last else frame)

    def _token(self) -> str:
        return self.tokens.write(AggregateResumePoint(self.position, self.events))
