"""Parses the body of a call that executes a statement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from analytics.media_types import ARROW, CSV, JSON, NDJSON, PARQUET
from analytics.query.files import StateSelector
from analytics.query.query_parser import read_selector
from foundation.errors import FieldProblem, InvalidBody
from foundation.json_types import JsonObject, JsonValue

MEMBERS = frozenset(
    {
        *("sql", "parameters", "limit", "timeout", "format", "engine"),
        *("freshness", "state", "as_of", "since"),
    }
)
MAX_STATEMENT_CHARS, MAX_PARAMETERS = 100_000, 1_000
USUAL_LIMIT, MAX_LIMIT, MAX_FILE_LIMIT = 1_000, 10_000, 10_000_000
USUAL_TIMEOUT_S, MAX_TIMEOUT_S = 30.0, 300.0
FORMATS: Mapping[str, str] = {
    "json": JSON,
    "ndjson": NDJSON,
    "csv": CSV,
    "arrow": ARROW,
    "parquet": PARQUET,
}


class SqlEngine(StrEnum):
    """What executes a statement."""

    AUTO = "auto"
    DUCKDB = "duckdb"
    SPARK = "spark"


Parameters: TypeAlias = list[JsonValue] | dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class StatementRequest:
    """A statement, and what its caller wants of the result."""

    sql: str
    parameters: Parameters
    wanted: StateSelector
    media_type: str
    limit: int
    timeout_s: float
    engine: SqlEngine


def read_request(body: JsonValue, accept: str) -> StatementRequest:
    """Parse a body, or raise `InvalidBody`."""
    if not isinstance(body, dict):
        raise InvalidBody("The body must be a JSON object.")
    unknown = [name for name in body if name not in MEMBERS]
    if unknown:
        problems = [FieldProblem(f"/{n}", "unknown_field", "Unknown field.") for n in unknown[:100]]
        raise InvalidBody(errors=problems)
    media_type = _media_type(body, accept)
    usual, most = (
        (USUAL_LIMIT, MAX_LIMIT) if media_type == JSON else (MAX_FILE_LIMIT, MAX_FILE_LIMIT)
    )
    return StatementRequest(
        _sql(body.get("sql")),
        _parameters(body.get("parameters")),
        read_selector(body),
        media_type,
        _limit(body.get("limit"), usual, most),
        _timeout(body.get("timeout")),
        _engine(body.get("engine", SqlEngine.AUTO)),
    )


def _media_type(body: JsonObject, accept: str) -> str:
    """Return the type of the result: `format` takes precedence over the header `Accept`."""
    if "format" not in body:
        return next((kind for kind in FORMATS.values() if kind != JSON and kind in accept), JSON)
    name = body["format"]
    if not isinstance(name, str) or name not in FORMATS:
        raise _wrong("/format", f"Expected one of {', '.join(FORMATS)}.")
    return FORMATS[name]


def _sql(value: JsonValue) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _wrong("/sql", "Expected a SELECT statement.")
    if len(value) > MAX_STATEMENT_CHARS:
        raise _wrong("/sql", f"A statement may have at most {MAX_STATEMENT_CHARS} characters.")
    return value


def _parameters(value: JsonValue) -> Parameters:
    if value is None:
        return []
    if not isinstance(value, list | dict) or len(value) > MAX_PARAMETERS:
        detail = f"Expected a list, or an object by name, of at most {MAX_PARAMETERS} values."
        raise _wrong("/parameters", detail)
    return value


def _limit(value: JsonValue, usual: int, most: int) -> int:
    if value is None:
        return usual
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise _wrong("/limit", f"Expected an integer from 1 to {most}.")
    return value


def _timeout(value: JsonValue) -> float:
    if value is None:
        return USUAL_TIMEOUT_S
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < value <= MAX_TIMEOUT_S:  # type: ignore[operator]
        raise _wrong("/timeout", f"Expected seconds, more than 0 and at most {MAX_TIMEOUT_S:.0f}.")
    return float(value)  # type: ignore[arg-type]


def _engine(value: JsonValue) -> SqlEngine:
    if not isinstance(value, str) or value not in [*SqlEngine]:
        raise _wrong("/engine", f"Expected one of {', '.join(SqlEngine)}.")
    return SqlEngine(value)


def _wrong(pointer: str, detail: str) -> InvalidBody:
    return InvalidBody(detail, errors=[FieldProblem(pointer, "invalid", detail)])
