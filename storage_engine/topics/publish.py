"""Publishing: the request, and the command for the node. Every publication has an id and is
published once under it, so a call that is repeated, by a client or by this process after the node
has restarted, publishes nothing twice.
"""

from __future__ import annotations

from dataclasses import dataclass

from data_plane import times
from foundation.errors import DocumentTooLarge, FieldProblem, InvalidBody
from foundation.ids import uuid7
from foundation.resp_pipeline import Argument
from rillbase_native import Value
from storage_engine.node import publication as replies
from storage_engine.node.publication import Publication
from storage_engine.topics import places
from storage_engine.topics.facts import TopicFacts

MEMBERS = (
    "id",
    "geo",
    "data",
    "publication_id",
    "at",
    "expires_in_s",
    "expires_at",
    "self_join",
)
MAX_NAME_CHARS = 200
MAX_EXPIRES_S = 1e10


@dataclass(frozen=True, slots=True)
class PublishRequest:
    """A parsed publication."""

    name: str
    place: list[Argument]
    #: BSON.
    data: bytes | None
    at_ms: int | None
    until_ms: int | None
    self_join: bool

    def arguments(self) -> list[Argument]:
        words: list[Argument] = [*self.place, "NAME", self.name, "ONCE"]
        if self.data is not None:
            words += ["BSON", self.data]
        if self.at_ms is not None:
            words += ["AT", self.at_ms]
        if self.until_ms is not None:
            words += ["UNTIL", self.until_ms]
        return [*words, "JOIN"] if self.self_join else words


@dataclass(frozen=True, slots=True)
class PublishResult:
    """The result of a publication."""

    name: str
    position: int
    matched: int
    #: At the same place, if the publisher requested them.
    publications: list[Publication] | None
    #: Whether it had been published before.
    repeated: bool


def read(body: Value, topic: TopicFacts, *, key: str | None) -> PublishRequest:
    """Parse a body. `key`: the id of a publication that does not specify one."""
    now = times.now_ms()
    data = body.get("data")
    if data is not None and not data.is_null and data.kind != "object":
        raise _wrong("data", "Expected an object.")
    packed = None if data is None or data.is_null else data.bson()
    if packed is not None and len(packed) > topic.max_data_bytes:
        raise DocumentTooLarge(
            f"A publication of this topic may carry at most {topic.max_data_bytes} bytes."
        )
    return PublishRequest(
        name=text(body, "publication_id", MAX_NAME_CHARS) or key or uuid7().hex,
        place=places.read(body, topic.kind),
        data=packed,
        at_ms=times.read(body.get("at"), "at", now),
        until_ms=_until(body, now),
        self_join=flag(body, "self_join"),
    )


async def publish(topic: TopicFacts, request: PublishRequest) -> PublishResult:
    """Publish, or detect that this has already been done. Another publication with the id is
    rejected by the node.
    """
    reply = await topic.call("RB.PUB", *request.arguments())
    return PublishResult(
        name=request.name,
        position=replies.number(reply, b"position"),
        matched=replies.number(reply, b"matched"),
        publications=replies.publications(replies.member(reply, b"publications"))
        if request.self_join
        else None,
        repeated=bool(replies.member(reply, b"duplicate")),
    )


def _until(body: Value, now: int) -> int | None:
    expires_in, until = (
        body.get("expires_in_s"),
        times.read(body.get("expires_at"), "expires_at", now),
    )
    if expires_in is None or expires_in.is_null:
        return until
    if until is not None:
        raise _wrong("expires_in_s", "Specify either `expires_in_s` or `expires_at`.")
    try:
        seconds = float(expires_in.ejson())
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < MAX_EXPIRES_S:
        raise _wrong("expires_in_s", "Expected a positive number of seconds.")
    return now + round(seconds * 1000)


def text(body: Value, name: str, max_chars: int) -> str | None:
    """Return a member that is a non-empty string, or None if it is missing."""
    member = body.get(name)
    if member is None or member.is_null:
        return None
    if member.kind != "string" or not 0 < len(member.text()) <= max_chars or "\0" in member.text():
        raise _wrong(name, f"Expected a string of 1 to {max_chars} characters.")
    return member.text()


def flag(body: Value, name: str) -> bool:
    """Return a boolean member, or False if it is missing."""
    member = body.get(name)
    if member is None or member.is_null:
        return False
    try:
        return member.boolean()
    except TypeError:
        raise _wrong(name, "Expected `true` or `false`.") from None


def _wrong(name: str, detail: str) -> InvalidBody:
    return InvalidBody(errors=[FieldProblem(f"/{name}", "invalid", detail)])
