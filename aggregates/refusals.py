"""The storage node's rejections for aggregates, as errors of the API."""

from __future__ import annotations

from aggregates.node import NO_AGGREGATE
from foundation.errors import (
    ApiError,
    EventTooOld,
    FieldProblem,
    InvalidBody,
    NotFound,
    QueryTooExpensive,
    SnapshotExpired,
    SumOverflow,
    TooManyValues,
)
from storage_engine.node import refusals
from storage_engine.node.wire import CommandRejected

#: Rejections of one event: its number, a pointer into it, a reason.
_OF_EVENTS: dict[str, type[ApiError]] = {
    "BADEVENT": InvalidBody,
    "EVENTTOOOLD": EventTooOld,
    "OVERFLOW": SumOverflow,
    "TOOMANYITEMS": TooManyValues,
}
#: A pointer to the whole event.
_WHOLE = "-"


def refused_event(refused: CommandRejected) -> int | None:
    """Return the index of the rejected event of a call, if there is one."""
    number = refused.text.partition(" ")[0]
    return int(number) if refused.code in _OF_EVENTS and number.isdigit() else None


def of_event(refused: CommandRejected, prefix: str) -> ApiError:
    """Return the error of a call whose event was rejected. `prefix` is the pointer to the event."""
    _, _, rest = refused.text.partition(" ")
    pointer, _, reason = rest.partition(" ")
    pointer = prefix + ("" if pointer == _WHOLE else pointer)
    family = _OF_EVENTS[refused.code]
    code = "invalid" if family is InvalidBody else family.code
    return family(reason, errors=[FieldProblem(pointer, code, reason)])


def as_api_error(refused: CommandRejected) -> ApiError:
    """Return the error for a rejection that is not about an event."""
    match refused.code:
        case "BADQUERY":
            pointer, _, reason = refused.text.partition(" ")
            pointer = "" if pointer == _WHOLE else pointer
            return InvalidBody(reason, errors=[FieldProblem(pointer, "invalid", reason)])
        case "SNAPSHOTEXPIRED":
            return SnapshotExpired(
                "A snapshot is kept for a minute, and only the newest 250 `fresh` ones."
            )
        case "TOOEXPENSIVE":
            return QueryTooExpensive(refused.text)
        case code if code == NO_AGGREGATE:
            return NotFound("The aggregate does not exist.")
        case _:
            return refusals.as_api_error(refused)
