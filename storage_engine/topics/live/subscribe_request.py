"""Parses `subscribe` messages for topics."""

from __future__ import annotations

from dataclasses import dataclass

from foundation.errors import FieldProblem, InvalidBody
from rillbase_native import Value
from storage_engine.topics import positions
from storage_engine.topics.publish import text

#: The members for a subscription of the connection.
MEMBERS = ("topic_id", "geo", "from", "to", "subscriber", "filter", "unseen_only")
#: The members for a subscription that was created by a call.
EXISTING = ("subscription_id", "after")
_COMMON = ("type", "id", "topic", "resume")
MAX_NAME_CHARS = 5_500
MAX_RESUME_CHARS = 4_200


@dataclass(frozen=True, slots=True)
class TopicSubscribeRequest:
    """A parsed subscribe message."""

    topic: str
    #: A subscription that was created by a call; None: one is created.
    existing: str | None
    #: The position after which to start; None: from its beginning.
    after: str | None
    resume: str | None


def read(message: Value) -> TopicSubscribeRequest:
    """Parse a `subscribe` message, or raise why it is not valid."""
    existing = text(message, "subscription_id", MAX_NAME_CHARS)
    allowed = (*_COMMON, *(MEMBERS if existing is None else EXISTING))
    problems = [
        FieldProblem(f"/{name}", "unknown_field", "Unknown field.")
        for name in message.names()
        if name not in allowed
    ]
    if problems:
        raise InvalidBody(errors=problems)
    return TopicSubscribeRequest(
        topic=text(message, "topic", 63) or "",
        existing=existing,
        after=text(message, "after", positions.CHARS),
        resume=text(message, "resume", MAX_RESUME_CHARS),
    )
