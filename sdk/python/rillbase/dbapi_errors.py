"""The errors of DB-API 2.0 (PEP 249), and which of them an error of the SDK becomes."""

from __future__ import annotations

from rillbase.errors import TOO_MANY, ClientClosed, RillbaseError, ServerError

UNAUTHENTICATED, FORBIDDEN, REQUEST_TIMEOUT, SERVER_ERROR = 401, 403, 408, 500


class Warning(Exception):  # noqa: A001 -- PEP 249 prescribes the name
    """Part of PEP 249; not raised."""


class Error(Exception):
    """The base of all errors. `__cause__` is the error of the SDK, if there is one."""


class InterfaceError(Error):
    """The connection or the cursor is closed."""


class DatabaseError(Error):
    """The base of the errors below."""


class DataError(DatabaseError):
    """A value cannot be converted or computed."""


class OperationalError(DatabaseError):
    """The server is unavailable or overloaded, rejects the credentials, or stops the statement."""


class IntegrityError(DatabaseError):
    """Part of PEP 249; not raised, because statements only read."""


class InternalError(DatabaseError):
    """Part of PEP 249; not raised."""


class ProgrammingError(DatabaseError):
    """The statement or its parameters are wrong."""


class NotSupportedError(DatabaseError):
    """The statement writes, or its result is larger than the server returns."""


def as_dbapi_error(error: RillbaseError) -> Error:
    """Return an error of the SDK as one of DB-API 2.0."""
    if isinstance(error, ClientClosed):
        return InterfaceError("The connection is closed.")
    if not isinstance(error, ServerError):
        return OperationalError(str(error))
    if error.code == "evaluation_failed":
        return DataError(str(error))
    is_operational = (
        error.status in _OPERATIONAL
        or error.status >= SERVER_ERROR
        or error.code in ("query_too_expensive", "state_expired")
    )
    return (OperationalError if is_operational else ProgrammingError)(str(error))


_OPERATIONAL = frozenset({UNAUTHENTICATED, FORBIDDEN, REQUEST_TIMEOUT, TOO_MANY})
