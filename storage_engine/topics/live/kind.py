"""The subscription kind of topics."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from dataclasses import dataclass
from functools import partial

from connections import frames as connection_frames
from connections.subscriptions import Subscriber, SubscriptionOutlet
from foundation.api.problems import translate
from foundation.errors import (
    ApiError,
    FieldProblem,
    InvalidBody,
    NotFound,
    SubscriptionEnded,
)
from foundation.json_types import JsonObject
from foundation.names import NAME_PATTERN
from rillbase_native import Value
from storage_engine.node.client import client
from storage_engine.node.feeds import GONE, FeedFollower, feeds
from storage_engine.node.node_subscription import NodeSubscription
from storage_engine.node.publication import Publication
from storage_engine.topics import facts, positions, subscribe
from storage_engine.topics.facts import READ, TopicFacts
from storage_engine.topics.live import frames
from storage_engine.topics.live import subscribe_request as wanting
from storage_engine.topics.live.subscribe_request import TopicSubscribeRequest
from storage_engine.topics.live.tokens import TopicResumePoint, TopicResumeTokens
from storage_engine.topics.positions import SubscriptionName

_NAME = re.compile(rf"{NAME_PATTERN}\Z")
_SHOWN = ("topic_id", "geo", "from", "to", "filter", "unseen_only", "subscription_id")


class TopicSubscriptionKind:
    """The kind of subscription that `topic` names."""

    member = "topic"

    async def open(
        self, subscriber: Subscriber, message: Value, outlet: SubscriptionOutlet
    ) -> TopicSubscription:
        """Start a subscription, or raise why it cannot start."""
        facts.allow(subscriber.principal, READ)
        request = wanting.read(message)
        if not _NAME.match(request.topic):
            raise NotFound(f"The topic {request.topic!r} does not exist.")
        topic = await facts.find(subscriber.tenant.id, request.topic)
        tokens = TopicResumeTokens(subscriber.tenant.id, subscriber.principal.actor, topic)
        watched = TopicSubscription(outlet, subscriber, topic, message, request, tokens)
        await watched.begin()
        return watched


_ending: set[asyncio.Task[None]] = set()


async def _unsubscribe(topic: TopicFacts, name: SubscriptionName) -> None:
    # If the node is unavailable, the subscription ends at its `to`.
    with contextlib.suppress(ApiError):
        await client().call(topic.tenant_id, "RB.UNSUB", name.node_name)


@dataclass(slots=True, eq=False)
class TopicSubscription(NodeSubscription):
    """One subscription to a topic. It follows the storage node's subscription."""

    topic: TopicFacts
    message: Value
    request: TopicSubscribeRequest
    tokens: TopicResumeTokens
    #: Whether the client has received `ready`.
    ready_sent: bool = False
    name: SubscriptionName | None = None
    following: FeedFollower | None = None
    #: Subscribing again because the node's subscription had ended.
    resubscription: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Create the subscription, or resume one."""
        if self.request.resume is not None:
            resume_point = self.tokens.read(self.request.resume)
            self.events = resume_point.events
            self._follow(resume_point.name, resume_point.position)
        elif self.request.existing is not None:
            name = positions.read_name(self.request.existing, self.topic)
            self._follow(name, self._beginning(name))
            await self.wait_for_acceptance(self.expect_acceptance())
        else:
            await self._subscribe()

    def _beginning(self, name: SubscriptionName) -> int:
        if self.request.after is None:
            return name.position
        try:
            return positions.position_of(self.topic.node_name, self.request.after)
        except positions.UnknownToken:
            detail = "A position, as in the publications of this topic."
            raise InvalidBody(errors=[FieldProblem("/after", "invalid", detail)]) from None

    async def _subscribe(self) -> None:
        request = subscribe.read(self.message, self.topic, id_member="topic_id")
        done = await subscribe.subscribe(self.topic, request)
        token = self.tokens.write(TopicResumePoint(done.name, done.name.position, self.events))
        item = partial(frames.item, self.topic, canonical=self.subscriber.canonical)
        for frame in connection_frames.results(
            self.id, done.publications, item, frames.PART, token
        ):
            self.send(frame)
        self._follow(done.name, done.name.position)

    def _follow(self, name: SubscriptionName, position: int) -> None:
        self.name = name
        feed = feeds.of(self.topic.tenant_id)
        self.following = feed.follow(name.node_name, position, self)

    def authorize(self) -> None:
        facts.allow(self.subscriber.principal, READ)

    def stop_following(self) -> None:
        # The node's subscription remains, for a client that reconnects.
        if self.following is not None:
            self.following.close()
            self.following = None

    def unsubscribed(self) -> None:
        """End the node's subscription, if this connection has created it."""
        if self.name is not None and self.request.existing is None:
            ending = asyncio.create_task(_unsubscribe(self.topic, self.name))
            _ending.add(ending)
            ending.add_done_callback(_ending.discard)

    def drained(self, frames: int, size_bytes: int) -> None:
        """Record how much has been sent to the client, and follow again if there is room."""
        NodeSubscription.drained(self, frames, size_bytes)
        if self.following is not None and self.following.lags and self.has_room(half=True):
            self.following.resume()

    def describe(self) -> JsonObject:
        shown: JsonObject = {}
        for name in _SHOWN:
            value = self.message.get(name)
            if value is not None:
                shown[name] = json.loads(value.ejson())
        query_hash = "" if self.name is None else self.name.public
        return {"topic": self.topic.name, "query": shown, "query_hash": query_hash}

    def receive(self, publication: Publication) -> bool:
        """Send a publication, unless too much is already in flight."""
        if self.name is None or not self.has_room():
            return False
        self.events += 1
        token = self.tokens.write(TopicResumePoint(self.name, publication.position, self.events))
        form = self.subscriber.canonical
        self.send(
            frames.event(self.id, self.topic, publication, self.events, token, canonical=form)
        )
        return True

    def live(self) -> None:
        """Notify the client that it receives every publication from now on."""
        self.accepted()
        if not self.ready_sent and self.following is not None and self.name is not None:
            token = self.tokens.write(
                TopicResumePoint(self.name, self.following.position, self.events)
            )
            self.send(connection_frames.ready(self.id, token))
            self.ready_sent = True
        elif self.state == "stale":
            self.send(
                connection_frames.status(self.id, "live", "the storage node is available again")
            )
        self.state = "live"

    def ended(self, reason: str) -> None:
        """End as the node's subscription has."""
        match reason:
            case "expired":
                self.end(None)
            case "unsubscribed":
                self.end(SubscriptionEnded("The subscription has been deleted."))
            case "topic dropped":
                self.end(NotFound("The topic has been deleted."))
            case _ if reason == GONE and self._may_resubscribe:
                self.resubscription = asyncio.create_task(self._resubscribe())
            case _:
                self.end(NotFound("The subscription does not exist or has ended."))

    @property
    def _may_resubscribe(self) -> bool:
        subject = self.message.get("topic_id") or self.message.get("geo")
        return (
            self.request.resume is not None and subject is not None and self.resubscription is None
        )

    async def _resubscribe(self) -> None:
        """Subscribe again for a client that reconnects too late, and notify it of the reset."""
        self.send(connection_frames.reset(self.id, "expired"))
        self.events, self.ready_sent = 0, False
        try:
            await self._subscribe()
        except Exception as error:  # noqa: BLE001 -- any error ends the subscription with a message
            self.end(translate(error))
        if self.over:
            self.close()
