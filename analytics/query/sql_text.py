"""Pieces of SQL with their parameters. Values of callers are always parameters."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable
from dataclasses import dataclass

from analytics.query.literals import Literal, microseconds

#: DuckDB ignores case in names, so capitals are marked.
_CAPITAL = re.compile(r"[A-Z^]")


@dataclass(frozen=True, slots=True)
class Sql:
    """A piece of SQL, and the values of its question marks in order."""

    text: str
    parameters: tuple[Literal, ...] = ()


def parameter(value: Literal) -> Sql:
    """Return a value as a parameter."""
    if isinstance(value, datetime.datetime):
        return moment(microseconds(value))
    return Sql("?", (value,))


def moment(microseconds_: int) -> Sql:
    """Return a time as a parameter: DuckDB needs another library to bind those of Python."""
    return Sql("make_timestamptz(CAST(? AS BIGINT))", (microseconds_,))


def formatted(template: str, *pieces: Sql) -> Sql:
    """Insert pieces in place of the braces of a template, in order."""
    parameters = tuple(value for piece in pieces for value in piece.parameters)
    return Sql(template.format(*(piece.text for piece in pieces)), parameters)


def joined(separator: str, pieces: Iterable[Sql]) -> Sql:
    listed = list(pieces)
    parameters = tuple(value for piece in listed for value in piece.parameters)
    return Sql(separator.join(piece.text for piece in listed), parameters)


def identifier(name: str) -> str:
    """Return a name as SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal_text(text: str) -> str:
    """Return a text as SQL."""
    return "'" + text.replace("'", "''") + "'"


def stored_name(name: str) -> str:
    """Return the name of a column in generated SQL: different even if case is ignored."""
    return _CAPITAL.sub(r"^\g<0>", name)


def column(name: str) -> str:
    """Return a column as SQL."""
    return identifier(stored_name(name))


def columns(names: Iterable[str]) -> str:
    return ", ".join(column(name) for name in names)
