"""The base of the errors that users see."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from foundation.json_types import JsonObject

TYPE_BASE = "urn:rillbase:error:"

#: Limits of an error response, which quotes input of any length.
MAX_DETAIL_CHARS, MAX_POINTER_CHARS, MAX_PROBLEMS = 400, 200, 100

CATALOGUE: dict[str, type[ApiError]] = {}


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One offending place in the request: a JSON pointer, a stable code and a readable message."""

    pointer: str
    code: str
    detail: str


class ApiError(Exception):
    """Base of all errors that are part of the public contract.

    `errors` names the offending places; `headers` are added to the HTTP response.
    """

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal"
    title: ClassVar[str] = "Something went wrong on our side"

    def __init__(
        self,
        detail: str = "",
        *,
        errors: Iterable[FieldProblem] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail or self.title)
        self.detail = detail
        self.errors = tuple(errors)
        self.headers = dict(headers or {})
        #: Whether it has already been written to the error log.
        self.is_noted = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "code" in cls.__dict__:
            existing = CATALOGUE.setdefault(cls.code, cls)
            if existing is not cls and existing.__qualname__ != cls.__qualname__:
                raise TypeError(f"error code {cls.code!r} is already taken by {existing.__name__}")

    def problem(self, request_id: str | None = None) -> JsonObject:
        """Return the body of the response, as defined by RFC 9457."""
        body: JsonObject = {
            "type": TYPE_BASE + self.code,
            "title": self.title,
            "status": self.status,
            "code": self.code,
        }
        if self.detail:
            body["detail"] = _cut(self.detail, MAX_DETAIL_CHARS)
        if self.errors:
            body["errors"] = [
                {
                    "pointer": _cut(e.pointer, MAX_POINTER_CHARS),
                    "code": e.code,
                    "detail": _cut(e.detail, MAX_DETAIL_CHARS),
                }
                for e in self.errors[:MAX_PROBLEMS]
            ]
        if request_id:
            body["request_id"] = request_id
        return body


def _cut(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else f"{text[: max_chars - 1]}…"
