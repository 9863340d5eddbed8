"""Errors, by what the caller does about them."""

from __future__ import annotations

from dataclasses import dataclass

from rillbase.shapes import Document

TOO_MANY, BAD_GATEWAY = 429, 502
#: The most fields that a message names.
MAX_NAMED_PLACES = 10


class RillbaseError(Exception):
    """The base of all errors. Programs should check `code`, which is stable; messages are for
    people.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def is_temporary(self) -> bool:
        """Whether the same call may succeed later, unchanged.

        Example:
            try:
                todos.insert({"_id": "milk"})
            except RillbaseError as error:
                print(error.code, error.is_temporary)  # duplicate_id False
        """
        return False


@dataclass(frozen=True, slots=True)
class ErrorPlace:
    """A field of the request, and what is wrong with it."""

    pointer: str
    code: str
    detail: str


class ServerError(RillbaseError):
    """The server rejected the request. `code` is one of the documented error codes.

    As a text it has the title, the detail, and each invalid field on a line of its own.
    """

    def __init__(self, problem: Document, status: int, retry_after_s: float | None = None) -> None:
        self.title: str = problem.get("title") or ""
        self.detail: str = problem.get("detail") or ""
        self.places = [
            ErrorPlace(place.get("pointer", ""), place.get("code", ""), place.get("detail", ""))
            for place in problem.get("errors", [])
        ]
        text = _message(self.title, self.detail, self.places)
        super().__init__(
            problem.get("code", f"http_{status}"),
            text or f"The server responded with status {status}.",
        )
        self.status: int = problem.get("status", status)
        self.request_id: str | None = problem.get("request_id")
        self.retry_after_s = retry_after_s

    @property
    def is_temporary(self) -> bool:
        passes = self.status == TOO_MANY or self.status >= BAD_GATEWAY
        return passes or self.code == "idempotency_in_progress"


def _message(title: str, detail: str, places: list[ErrorPlace]) -> str:
    """Return a line with the title and the detail, and a line for each field.

    The detail of a single field is often that of the whole error, and is not repeated.
    """
    if len(places) == 1 and detail in ("", places[0].detail):
        return _joined(title, _place_text(places[0]))
    lines = [_joined(title, detail)]
    lines += [f"  {_place_text(place)}" for place in places[:MAX_NAMED_PLACES]]
    if len(places) > MAX_NAMED_PLACES:
        lines.append(f"  and {len(places) - MAX_NAMED_PLACES} more")
    return "\n".join(line for line in lines if line)


def _place_text(place: ErrorPlace) -> str:
    return _joined(place.pointer, place.detail or place.code)


def _joined(*parts: str) -> str:
    return ": ".join(part for part in parts if part)


class ConnectionLost(RillbaseError):
    """The server is unreachable, or the connection was lost before the response."""

    def __init__(self, message: str = "The server is unreachable.") -> None:
        super().__init__("connection_lost", message)

    @property
    def is_temporary(self) -> bool:
        return True


class CallTimeout(RillbaseError):
    """No response arrived before the call's timeout."""

    def __init__(self, timeout_s: float) -> None:
        super().__init__("timeout", f"The server did not respond within {timeout_s} s.")

    @property
    def is_temporary(self) -> bool:
        return True


class TokenUnavailable(RillbaseError):
    """`get_token` failed; its own exception is the cause. It is called again with the next call."""

    def __init__(self) -> None:
        super().__init__("token_unavailable", "The token could not be obtained.")

    @property
    def is_temporary(self) -> bool:
        return True


class QueueFailed(RillbaseError):
    """The queue's file cannot be used: another program has opened it, or the disk is full."""

    def __init__(self, why: str) -> None:
        super().__init__("queue_failed", f"The queue of writes cannot be stored: {why}.")


class OutcomeUnknown(RillbaseError):
    """A queued write was sent too long ago to be retried; it may have been applied."""

    def __init__(self) -> None:
        text = (
            "The write was sent more than a day ago without a response; it may have been applied."
        )
        super().__init__("outcome_unknown", text)


class ClientClosed(RillbaseError):
    """The client was closed before the operation had finished."""

    def __init__(self) -> None:
        super().__init__("closed", "The client is closed.")
