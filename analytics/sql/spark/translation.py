"""Generates Spark's SQL from a statement in DuckDB's dialect.

Spark never receives a statement's text: it has functions that run programs and read any file. The
statement is parsed, checked against lists of what is translated (`grammar`) and rewritten for Spark
(`rules`). Spark's SQL is generated from the resulting tree, and texts are its parameters.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import cast

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import traverse_scope
from sqlglot.tokenizer_core import TokenType

from analytics.sql.parameters import Bound
from analytics.sql.spark import grammar, rules
from analytics.sql.spark.constants import Texts, bound_value, parameter, typed_number
from analytics.sql.spark.grammar import Untranslatable
from analytics.sql.spark.rules import queries

logger = logging.getLogger(__name__)

_DIALECT = "duckdb"
_SYNTAX = "The statement has syntax that is not available on Spark."
_NAME = re.compile(r"[^`$\x00-\x1f\x7f]{1,255}\Z")
#: Names of tables, which are never those of files.
_TABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}\Z")
_MAX_STATEMENT_CHARS, _MAX_CHARS = 20_000, 1_000_000
#: How deep expressions are nested whose rules repeat their operands.
_MAX_REPEATED = 4
#: The types of tables' columns, as sqlglot reads them.
SCHEMA_TYPES: Mapping[str, str] = {
    "bool": "BOOLEAN",
    "int32": "INT",
    "int64": "BIGINT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "date": "DATE",
    "timestamp": "TIMESTAMPTZ",
}


@dataclass(frozen=True, slots=True)
class SparkStatement:
    """What Spark executes."""

    text: str
    #: The texts of the statement, by the names of parameters in `text`.
    texts: Mapping[str, str]
    #: The tables and views of the dataset that it reads.
    tables: tuple[str, ...]
    #: The names of all columns that it refers to, in lower case.
    columns: frozenset[str]
    #: Whether DuckDB may have a row where Spark has none.
    needs_rows: bool


def translate(
    sql: str,
    tables: Mapping[str, Mapping[str, str]],
    parameters: list[Bound] | dict[str, Bound],
) -> SparkStatement:
    """Return the statement for Spark; raise `Untranslatable` if it cannot have the same result.

    `tables` has the columns of each table, with the names of their types in definitions.
    """
    try:
        return _translate(sql, tables, parameters)
    except SqlglotError as error:
        raise Untranslatable(_SYNTAX) from error
    except (
        AssertionError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
    ) as error:
        # sqlglot raises such errors for some statements.
        logger.warning("a statement was not translated", exc_info=error)
        raise Untranslatable(_SYNTAX) from error
    except RecursionError:
        raise Untranslatable("The statement is nested too deeply for Spark.") from None


def _translate(
    sql: str,
    tables: Mapping[str, Mapping[str, str]],
    parameters: list[Bound] | dict[str, Bound],
) -> SparkStatement:
    if len(sql) > _MAX_STATEMENT_CHARS:
        raise Untranslatable(f"Statements on Spark have at most {_MAX_STATEMENT_CHARS} characters.")
    trees = sqlglot.parse(_with_numbers(sql), read=_DIALECT)
    tree = trees[0] if len(trees) == 1 else None
    if not isinstance(tree, exp.Query):
        raise Untranslatable("Only one SELECT statement is available on Spark.")
    _bind(tree, parameters)
    grammar.check(tree)
    names = _tables(tree, tables)
    schema = {
        name: {column: SCHEMA_TYPES[kind] for column, kind in columns.items()}
        for name, columns in tables.items()
    }
    tree = qualify(tree, schema=cast("dict[str, object]", schema), dialect=_DIALECT)
    tree = annotate_types(tree, schema=cast("dict[str, object]", schema), dialect=_DIALECT)
    grammar.check(tree)
    _check_names(tree)
    _check_nesting(tree)
    _check_limits(tree)
    columns = frozenset(column.name.lower() for column in tree.find_all(exp.Column))
    for node in reversed([*tree.walk()]):
        new = rules.rewritten(node)
        if new is not node:
            node.replace(new)
    texts: Texts = {}
    for literal in [*tree.find_all(exp.Literal)]:
        if literal.is_string:
            literal.replace(parameter(texts, literal.name))
    text = tree.sql("spark", identify=True, comments=False)
    if len(text) > _MAX_CHARS:
        raise Untranslatable("The statement is too long for Spark.")
    group = tree.args.get("group")
    needs_rows = group is not None and queries.has_empty_set(group)
    return SparkStatement(text, texts, names, columns, needs_rows)


def _with_numbers(sql: str) -> str:
    """Return a statement whose `?` have their numbers."""
    parts, end, number = [], 0, 0
    for token in sqlglot.tokenize(sql, read=_DIALECT):
        if token.token_type is TokenType.PLACEHOLDER and token.text == "?":
            number += 1
            parts += [sql[end : token.start], f"${number}"]
            end = token.end + 1
    return "".join([*parts, sql[end:]])


def _bind(tree: exp.Expr, parameters: list[Bound] | dict[str, Bound]) -> None:
    """Replace parameters by their values, and give numbers their types."""
    for node in [*tree.find_all(exp.Placeholder, exp.Parameter)]:
        node.replace(bound_value(_value(str(node.name), parameters)))
    for literal in [*tree.find_all(exp.Literal)]:
        if not literal.is_string and not isinstance(
            literal.parent, exp.Limit | exp.Offset | exp.DataTypeParam | exp.WindowSpec
        ):
            number = typed_number(literal)
            if number is not literal:
                literal.replace(number)


def _value(name: str, parameters: list[Bound] | dict[str, Bound]) -> Bound:
    if isinstance(parameters, dict):
        values = {key.lower(): value for key, value in parameters.items()}
        if name.lower() in values:
            return values[name.lower()]
    elif name.isdigit() and 1 <= int(name) <= len(parameters):
        return parameters[int(name) - 1]
    raise Untranslatable(f"The parameter {name[:63]!r} has no value.")


def _tables(tree: exp.Expr, tables: Mapping[str, object]) -> tuple[str, ...]:
    """Return the tables that are read; raise `Untranslatable` for one that is not the dataset's.

    The name of a common table expression may be that of a table, which then counts as read.
    """
    stored = {name.lower(): name for name in tables}
    defined = _common_tables(tree, stored)
    read = {}
    for table in tree.find_all(exp.Table):
        name = table.name.lower()
        is_name = isinstance(table.this, exp.Identifier) and _TABLE_NAME.match(name)
        if not is_name or name not in stored.keys() | defined:
            raise Untranslatable(f"The table {table.name[:63]!r} is not available on Spark.")
        if name in stored:
            read[stored[name]] = True
    return tuple(read)


def _common_tables(tree: exp.Expr, stored: Collection[str]) -> set[str]:
    """Return the names of common tables, which become those of the whole statement."""
    names: set[str] = set()
    for cte in tree.find_all(exp.CTE):
        name = cte.alias.lower()
        is_inner = cte.parent is None or cte.parent.parent is not tree
        if name in names or (is_inner and name in stored):
            raise Untranslatable(f"Another table has the name {cte.alias[:63]!r} on Spark.")
        names.add(name)
    return names


def _check_limits(tree: exp.Expr) -> None:
    """Spark limits the rows of a correlated query before it selects them."""
    for scope in traverse_scope(tree):
        query = scope.expression
        if scope.external_columns and any(query.find_all(exp.Limit, exp.Offset)):
            raise Untranslatable("LIMIT in correlated queries is not available on Spark.")


def _check_names(tree: exp.Expr) -> None:
    for identifier in tree.find_all(exp.Identifier):
        if not _NAME.match(identifier.name):
            raise Untranslatable(f"The name {identifier.name[:63]!r} is not available on Spark.")
    for cte in tree.find_all(exp.CTE):
        if not _TABLE_NAME.match(cte.alias):
            raise Untranslatable(f"The name {cte.alias[:63]!r} is not available on Spark.")


def _check_nesting(tree: exp.Expr) -> None:
    for node in tree.find_all(*rules.REPEATING):
        depth, parent = 0, node.parent
        while parent is not None:
            depth += isinstance(parent, rules.REPEATING)
            parent = parent.parent
        if depth >= _MAX_REPEATED:
            raise Untranslatable("The statement is nested too deeply for Spark.")
