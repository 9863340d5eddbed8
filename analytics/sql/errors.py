"""Errors of a statement: what DuckDB says, as errors of the API."""

from __future__ import annotations

import re

import duckdb

from foundation.errors import (
    ApiError,
    EvaluationFailed,
    FieldProblem,
    InvalidSql,
    QueryTooExpensive,
)

_TOO_MUCH_MEMORY = "The statement takes more memory than allowed."
_TOO_MUCH_SPACE = "The statement takes more temporary disk space than allowed."
#: DuckDB quotes the statement below the message, with a mark under the place.
_QUOTE = re.compile(r"\n\s*\nLINE (\d+):")
_KIND = re.compile(r"\A[A-Z][A-Za-z ]* Error: ")


def as_api_error(error: Exception) -> ApiError:
    """Return an error of a statement as an error of the API."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, MemoryError | duckdb.OutOfMemoryException):
        is_space = "max_temp_directory_size" in str(error)
        return QueryTooExpensive(_TOO_MUCH_SPACE if is_space else _TOO_MUCH_MEMORY)
    if isinstance(error, duckdb.IOException):
        # The message names files of the server.
        if "File too large" in str(error):
            return QueryTooExpensive(_TOO_MUCH_SPACE)
        return EvaluationFailed("A file could not be read or written.")
    if isinstance(error, OverflowError):
        detail = "A date or time is outside of the years 1 to 9999: cast it to VARCHAR."
        return EvaluationFailed(detail)
    message, line = _message(str(error))
    if isinstance(error, _OF_THE_STATEMENT):
        detail = f"Line {line}: {message}" if line else message
        return InvalidSql(detail, errors=[FieldProblem("/sql", "invalid", detail)])
    return EvaluationFailed(message)


#: The statement is wrong, whatever the rows are. Others depend on the rows.
_OF_THE_STATEMENT = (
    duckdb.ParserException,
    duckdb.BinderException,
    duckdb.CatalogException,
    duckdb.SyntaxException,
    duckdb.NotImplementedException,
    duckdb.PermissionException,
    duckdb.InvalidInputException,
)


def _message(text: str) -> tuple[str, str]:
    """Return a message without what DuckDB adds to it, and the line that it names."""
    quote = _QUOTE.search(text)
    message = _KIND.sub("", text[: quote.start()] if quote else text).strip()
    return message, quote[1] if quote else ""
