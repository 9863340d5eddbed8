"""The subscribe message of an aggregate."""

from __future__ import annotations

from dataclasses import dataclass

from aggregates.api.queries import LIVE_MEMBERS, as_text
from foundation.errors import FieldProblem, InvalidBody
from rillbase_native import Value
from storage_engine.topics.publish import text

_COMMON = ("type", "id", "aggregate", "resume")
MAX_NAME_CHARS, MAX_RESUME_CHARS = 63, 300


@dataclass(frozen=True, slots=True)
class AggregateSubscribeRequest:
    """A parsed subscribe message."""

    aggregate: str
    #: The query in the storage node's format.
    query: bytes
    resume: str | None


def read(message: Value) -> AggregateSubscribeRequest:
    """Parse a `subscribe`, or raise what is wrong with it."""
    problems = [
        FieldProblem(f"/{name}", "unknown_field", "Unknown field.")
        for name in message.names()
        if name not in (*_COMMON, *LIVE_MEMBERS)
    ]
    if problems:
        raise InvalidBody(errors=problems)
    return AggregateSubscribeRequest(
        aggregate=text(message, "aggregate", MAX_NAME_CHARS) or "",
        query=as_text(message, LIVE_MEMBERS),
        resume=text(message, "resume", MAX_RESUME_CHARS),
    )
