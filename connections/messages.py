"""Messages of clients: a JSON object each, with a `type` and an `id` that the client chooses."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from data_plane.request_reader import refuse_unknown, refusing
from foundation.errors import FieldProblem, InvalidBody
from foundation.refusals import as_api_error
from rillbase_native import QueryError, Value

MAX_FIRST_BYTES = 8 * 1024
MAX_BYTES = 32 * 1024 * 1024
MAX_ID_CHARS = 128


@dataclass(frozen=True, slots=True)
class Message:
    """One message, whose members are not validated yet."""

    type: str
    id: str | None
    value: Value
    #: The error of a member that was skipped because it exceeds its limit.
    refused: QueryError | None = None

    def check(self) -> None:
        """Raise the error of the message as a whole, if it has one."""
        if self.refused is not None:
            # A new error, since the traceback of the stored one would refer to this message.
            raise as_api_error(self.refused)

    def allow(self, members: Collection[str]) -> None:
        """Raise `InvalidBody` for unknown members."""
        refuse_unknown(self.value, (*members, "type", "id"))

    def text(self, member: str) -> str | None:
        """Return a member that is a string, or None if it is missing."""
        value = self.value.get(member)
        if value is None or value.is_null:
            return None
        if value.kind != "string":
            raise wrong(member, "Expected a string.")
        return value.text()

    def required_text(self, member: str) -> str:
        text = self.text(member)
        if text is None:
            raise wrong(member, "This field is required.", code="required")
        return text

    def required_id(self) -> str:
        if self.id is None:
            raise wrong("id", "This field is required.", code="required")
        return self.id


def wrong(member: str, detail: str, *, code: str = "invalid") -> InvalidBody:
    """Return the error for a member of a message."""
    return InvalidBody(errors=[FieldProblem(f"/{member}", code, detail)])


def read(text: bytes) -> Message:
    """Parse a message, or raise `InvalidBody`."""
    with refusing():
        value, refused = Value.parse_message(text)
    if value.kind != "object":
        raise InvalidBody("A message must be a JSON object.")
    kind, name = value.get("type"), value.get("id")
    if kind is None or kind.kind != "string":
        raise wrong("type", "A message must have a `type`, which is a string.")
    if name is None or name.is_null:
        return Message(kind.text(), None, value, refused)
    if name.kind != "string" or not 0 < len(name.text()) <= MAX_ID_CHARS:
        raise wrong("id", f"Expected a string of 1 to {MAX_ID_CHARS} characters.")
    return Message(kind.text(), name.text(), value, refused)
