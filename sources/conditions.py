"""Conditions under which a source halts or is copied again."""

from __future__ import annotations

import logging

import psycopg

from foundation.errors import FieldProblem, InvalidSource

logger = logging.getLogger(__name__)


class SourceUnsuitable(Exception):
    """The table cannot be a source. `code` is stable; `pointer` names the field."""

    def __init__(self, code: str, detail: str, pointer: str = "/table") -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.pointer = pointer

    def as_refusal(self) -> InvalidSource:
        """Return the error for a caller that declares such a source."""
        return InvalidSource(
            self.detail, errors=[FieldProblem(self.pointer, self.code, self.detail)]
        )


def invalid_document(reason: ValueError) -> SourceUnsuitable:
    """Return why a row cannot become a document: U+0000 in a text, for example, as in `json`."""
    return SourceUnsuitable("document_refused", f"invalid_document: {reason}")


class CopyRequired(Exception):
    """The log cannot be followed any further: the whole table has to be copied."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


#: SQLSTATEs of login failures that are permanent.
_LOGIN = ("password authentication failed", "no pg_hba.conf entry", "does not exist")


#: The message about a server within the installation's own networks.
_INTERNAL = "The connection or the login was rejected."


def of_error(error: psycopg.Error | OSError, *, is_internal: bool) -> tuple[str, str]:
    """Return a stable code for an error of a server or connection, and text without addresses.

    For an internal server all failures up to the login look the same. A tenant that may name any
    server could otherwise learn, port by port, what listens within our networks; the actual failure
    is in the log. An SQLSTATE comes from a database that has accepted the login.
    """
    state = error.sqlstate if isinstance(error, psycopg.Error) else None
    text = str(error).strip()
    if state is not None:
        return ("forbidden" if state == "42501" else "refused"), text.splitlines()[0]
    if is_internal:
        logger.warning("an internal source cannot be used: %s", text or repr(error))
        return "unreachable", _INTERNAL
    _, severity, reason = text.partition("FATAL:")
    if not severity:
        return "unreachable", "The connection failed."
    reason = reason.strip().splitlines()[0]
    return ("login_refused" if any(part in reason for part in _LOGIN) else "refused"), reason
