"""Messages of clients: a JSON object each, with a `type` and an `id` that the client chooses."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass, field

from data_plane.request_reader import refuse_unknown, refusing
from foundation.errors import FieldProblem, InvalidBody
from foundation.refusals import as_api_error
from rillbase_native import QueryError, Value

MAX_FIRST_BYTES = 8 * 1024
MAX_BYTES = 32 * 1024 * 1024
MAX_ID_CHARS = 128
#: Members that name what a message is about, as parameters of routes do.
OBJECTS = ("collection", "topic", "aggregate")


@dataclass(slots=True)
class Message:
    """One message, whose members are not validated yet. Not frozen, which would triple the time
    that creating one takes.
    """

    type: str
    id: str | None
    value: Value
    #: The error of a member that was skipped because it exceeds its limit.
    refused: QueryError | None = None
    size_bytes: int = 0
    #: When it was received.
    begin: float = field(default_factory=time.perf_counter)
    #: Names of what it is about, as of the parameters of a route, once it has been parsed.
    parameters: dict[str, str] = field(default_factory=dict)

    def check(self) -> None:
        """Raise the error of the message as a whole, if it has one."""
        if self.refused is not None:
            # A new error, since the traceback of the stored one would refer to this message.
            raise as_api_error(self.refused)

    def allow(self, members: Collection[str]) -> None:
        """Raise `InvalidBody` for unknown members."""
        refuse_unknown(self.value, (*members, "type", "id"))

    def name_objects(self) -> None:
        """Fill `parameters` of a subscription that was opened."""
        for member in OBJECTS:
            if (name := self.text(member)) is not None:
                self.parameters[member] = name

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
        return Message(kind.text(), None, value, refused, len(text))
    if name.kind != "string" or not 0 < len(name.text()) <= MAX_ID_CHARS:
        raise wrong("id", f"Expected a string of 1 to {MAX_ID_CHARS} characters.")
    return Message(kind.text(), name.text(), value, refused, len(text))
