"""What a subscriber to a topic says."""

from __future__ import annotations

from dataclasses import dataclass

from foundation.errors import FieldProblem, InvalidBody
from rillbase_native import Value
from storage_engine.topics import positions
from storage_engine.topics.publish import text

#: A subscription of the connection's own.
MEMBERS = ("topic_id", "geo", "from", "to", "subscriber", "filter", "unseen_only")
#: One that was made by a call.
EXISTING = ("subscription_id", "after")
_COMMON = ("type", "id", "topic", "resume")
MAX_NAME_CHARS = 5_500
MAX_RESUME_CHARS = 4_200


@dataclass(frozen=True, slots=True)
class TopicSubscribeRequest:
    """A parsed subscribe message."""

    topic: str
    #: A subscription that was made by a call; None: one is made.
    existing: str | None
    #: Behind which position; None: from its beginning.
    after: str | None
    resume: str | None


def read(message: Value) -> TopicSubscribeRequest:
    """Read a `subscribe`, or raise what is wrong with it."""
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
