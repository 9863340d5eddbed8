"""Subscribing: the request, and the command for the node."""

from __future__ import annotations

from dataclasses import dataclass

from data_plane import times
from data_plane.request_reader import refusing
from foundation.errors import FieldProblem, InvalidBody
from foundation.resp_pipeline import Argument
from rillbase_native import Filter, Value
from storage_engine.node import publication as replies
from storage_engine.node.publication import Publication, TopicSubscriber
from storage_engine.topics import places
from storage_engine.topics.facts import TopicFacts
from storage_engine.topics.positions import SubscriptionName
from storage_engine.topics.publish import flag, text

MEMBERS = ("id", "geo", "from", "to", "subscriber", "filter", "unseen_only", "self_join")
MAX_SUBSCRIBER_CHARS = 200
#: The default duration of a subscription.
USUAL_MS = 3_600_000
#: A sweep reads publications for webhooks, which takes some time after the end.
GRACE_MS = 30_000


@dataclass(frozen=True, slots=True)
class SubscribeRequest:
    """A parsed subscription. Times are milliseconds since 1970."""

    place: list[Argument]
    from_ms: int
    until_ms: int
    subscriber: str
    #: BSON.
    filter: bytes | None
    unseen_only: bool
    self_join: bool

    def arguments(self, grace_ms: int) -> list[Argument]:
        ends = self.until_ms + grace_ms
        words: list[Argument] = [*self.place, "FROM", self.from_ms, "UNTIL", ends]
        if self.subscriber:
            words += ["NAME", self.subscriber, "USER", self.subscriber]
        if self.filter is not None:
            words += ["FILTERBSON", self.filter]
        if self.unseen_only:
            words.append("UNSEEN")
        return [*words, "JOIN"] if self.self_join else words


@dataclass(frozen=True, slots=True)
class SubscribeResult:
    """The result of a subscription."""

    name: SubscriptionName
    #: Past publications.
    publications: list[Publication]
    #: Others at the same place, if the subscriber requested them.
    subscriptions: list[TopicSubscriber] | None


def read(body: Value, topic: TopicFacts, *, id_member: str = "id") -> SubscribeRequest:
    """Parse a body, or raise why it is not valid."""
    now = times.now_ms()
    query_filter = body.get("filter")
    with refusing():
        if query_filter is not None and not query_filter.is_null:
            Filter.parse(query_filter).check_live()
    from_ms = times.read(body.get("from"), "from", now)
    until_ms = times.read(body.get("to"), "to", now)
    begins, ends = now if from_ms is None else from_ms, until_ms or now + USUAL_MS
    if ends < begins or ends < now:
        detail = "`to` must be after `from` and in the future."
        raise InvalidBody(errors=[FieldProblem("/to", "invalid", detail)])
    subscriber, unseen_only = (
        text(body, "subscriber", MAX_SUBSCRIBER_CHARS),
        flag(body, "unseen_only"),
    )
    if unseen_only and subscriber is None:
        detail = "`unseen_only` requires `subscriber`."
        raise InvalidBody(errors=[FieldProblem("/subscriber", "required", detail)])
    return SubscribeRequest(
        place=places.read(body, topic.kind, id_member=id_member),
        from_ms=begins,
        until_ms=ends,
        subscriber=subscriber or "",
        filter=None if query_filter is None or query_filter.is_null else query_filter.bson(),
        unseen_only=unseen_only,
        self_join=flag(body, "self_join"),
    )


async def subscribe(
    topic: TopicFacts, request: SubscribeRequest, *, grace_ms: int = 0
) -> SubscribeResult:
    """Subscribe, and return existing matches."""
    reply = await topic.call("RB.SUB", *request.arguments(grace_ms))
    name = replies.member(reply, b"subscription")
    if not isinstance(name, bytes):
        raise replies.UnexpectedReply("a subscription has a name")
    return SubscribeResult(
        SubscriptionName(name.decode(), replies.number(reply, b"position")),
        replies.publications(replies.member(reply, b"publications")),
        replies.subscriptions(replies.member(reply, b"subscriptions"))
        if request.self_join
        else None,
    )
