"""Checks a statement by DuckDB's own parse tree, against a list of what is allowed.

What is not on the list is refused, so a construct that a later version of DuckDB adds is refused
too. The tree comes from `json_serialize_sql`, which accepts only SELECT statements.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from analytics.sql.functions import FUNCTIONS, TABLE_FUNCTIONS
from foundation.errors import FieldProblem, InvalidSql

MAX_STATEMENT_CHARS = 100_000

Node = dict[str, Any]
#: The names of common table expressions that are visible.
Scope = frozenset[str]

_QUERIES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
_SOURCES = frozenset(
    {"BASE_TABLE", "SUBQUERY", "JOIN", "TABLE_FUNCTION", "EXPRESSION_LIST", "EMPTY", "PIVOT"}
)
_EXPRESSIONS = frozenset(
    {
        *("COLUMN_REF", "CONSTANT", "COMPARISON", "CONJUNCTION", "FUNCTION", "OPERATOR", "CASE"),
        *("CAST", "BETWEEN", "STAR", "SUBQUERY", "WINDOW", "PARAMETER", "COLLATE", "LAMBDA"),
        *("LAMBDA_REF", "POSITIONAL_REFERENCE"),
    }
)
_PARTS = frozenset(
    {
        *("LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER", "ORDER_MODIFIER", "DISTINCT_MODIFIER"),
        *("ORDER_DEFAULT", "ASCENDING", "DESCENDING"),
    }
)
#: Types and samples, which contain neither expressions nor names of tables or functions.
_LEAVES = frozenset({"cast_type", "expected_types", "sample"})
#: CTEs with other names could stand for files where they are not visible.
_CTE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}\Z")
_UNKNOWN_LOCATION = 2**64 - 1


@dataclass(frozen=True, slots=True)
class StatementNeeds:
    """What a statement reads."""

    tables: frozenset[str]
    #: The names of all columns that it can refer to, in lower case; None: all columns.
    columns: frozenset[str] | None


def read_tree(sql: str, serialized: str) -> Node:
    """Return the tree of the only statement in `serialized`, or raise `InvalidSql`."""
    try:
        tree = json.loads(serialized)
    except RecursionError:
        raise refused(sql, "too_complex", "The statement is nested too deeply.") from None
    if tree["error"]:
        raise _parse_error(sql, tree)
    statements = tree["statements"]
    if len(statements) != 1:
        raise refused(sql, "not_allowed", "Expected one statement.")
    node: Node = statements[0]["node"]
    return node


def check(sql: str, tree: Node, tables: Collection[str]) -> StatementNeeds:
    """Return what a statement reads, or raise `InvalidSql` if it is not allowed to."""
    checker = _Checker(sql, frozenset(tables))
    try:
        checker.query(tree, frozenset())
        if checker.reads_all_columns or checker.names & checker.column_names:
            return StatementNeeds(frozenset(checker.tables), None)
        names = frozenset(text.lower() for text in _texts(tree))
    except RecursionError:
        raise refused(sql, "too_complex", "The statement is nested too deeply.") from None
    return StatementNeeds(frozenset(checker.tables), names)


@dataclass(slots=True)
class _Checker:
    """Walks one tree. All names are in lower case, because DuckDB ignores case."""

    sql: str
    allowed: frozenset[str]
    tables: set[str] = field(default_factory=set)
    #: The names and aliases of tables: as a column, one of them stands for a whole row.
    names: set[str] = field(default_factory=set)
    #: The last parts of the names of columns.
    column_names: set[str] = field(default_factory=set)
    reads_all_columns: bool = False

    def query(self, node: Node, scope: Scope) -> None:
        """Check a query, within which its own common table expressions are visible."""
        if node.get("type") not in _QUERIES:
            raise self._unsupported(node)
        for entry in node["cte_map"]["map"]:
            name = self._cte_name(entry["key"])
            self.walk({**entry["value"], "aliases": None}, scope)
            scope |= {name}
        if node["type"] in ("RECURSIVE_CTE_NODE", "CTE_NODE"):
            scope |= {self._cte_name(node["cte_name"])}
        for key, value in node.items():
            if key != "cte_map":
                self.walk(value, scope)

    def walk(self, value: object, scope: Scope) -> None:
        if isinstance(value, list):
            for item in value:
                self.walk(item, scope)
        elif not isinstance(value, dict):
            return
        elif "cte_map" in value:
            self.query(value, scope)
        elif "class" in value:
            self._expression(value, scope)
        elif value.get("type") in _SOURCES:
            self._source(value, scope)
        elif "type" in value and value["type"] not in _PARTS:
            raise self._unsupported(value)
        else:
            self._members(value, scope)

    def _members(self, value: Node, scope: Scope) -> None:
        for key, member in value.items():
            if key not in _LEAVES:
                self.walk(member, scope)

    def _expression(self, value: Node, scope: Scope) -> None:
        kind = value["class"]
        if kind not in _EXPRESSIONS:
            raise self._unsupported(value)
        if kind in ("FUNCTION", "WINDOW"):
            self._function(value, FUNCTIONS)
        elif kind == "COLUMN_REF":
            self.column_names.add(value["column_names"][-1].lower())
        elif kind in ("STAR", "POSITIONAL_REFERENCE"):
            self.reads_all_columns = True
        if kind != "CONSTANT":
            self._members(value, scope)

    def _function(self, value: Node, allowed: frozenset[str]) -> None:
        name = value["function_name"]
        if name.lower() not in allowed or value["catalog"] or value.get("export_state"):
            raise self._refuse(value, "function", f"The function {name[:63]!r} is not available.")
        # A column before the dot of a function is parsed as the function's schema.
        self.column_names.add(value["schema"].lower())

    def _source(self, value: Node, scope: Scope) -> None:
        kind = value["type"]
        if value["alias"]:
            self.names.add(value["alias"].lower())
        if kind == "BASE_TABLE":
            self._table(value, scope)
            return
        if kind == "TABLE_FUNCTION":
            function = value["function"]
            self._function(function, TABLE_FUNCTIONS)
            self._members(function, scope)
            return
        if kind == "PIVOT":
            self._pivot(value, scope)
            return
        if kind == "JOIN" and value["ref_type"] == "NATURAL":
            self.reads_all_columns = True
        self._members(value, scope)

    def _table(self, value: Node, scope: Scope) -> None:
        name = value["table_name"]
        self.names.add(name.lower())
        if value["catalog_name"] or value["schema_name"]:
            qualified = f"{value['schema_name']}.{name}"[:127]
            detail = f"The table {qualified!r} does not exist: tables have no schema."
            raise self._refuse(value, "table", detail)
        if value["at_clause"] is not None:
            detail = "AT is not available: pass `state` or `as_of` with the statement."
            raise self._refuse(value, "not_allowed", detail)
        if value["column_name_alias"]:
            self.reads_all_columns = True
        if name.lower() in scope:
            return
        if name.lower() not in self.allowed:
            raise self._refuse(value, "table", f"The table {name[:63]!r} does not exist.")
        self.tables.add(name.lower())

    def _pivot(self, value: Node, scope: Scope) -> None:
        """Check PIVOT and UNPIVOT, which group by all columns that they do not name."""
        self.reads_all_columns = True
        self.walk(value["source"], scope)
        self.walk(value["aggregates"], scope)
        for pivot in value["pivots"]:
            if pivot["pivot_enum"]:
                raise self._unsupported(value)
            self.walk(pivot["pivot_expressions"], scope)
            self.walk([entry["star_expr"] for entry in pivot["entries"]], scope)

    def _cte_name(self, name: str) -> str:
        if not _CTE_NAME.match(name):
            detail = f"The name {name[:63]!r} of a query in WITH must be letters, digits and _."
            raise refused(self.sql, "not_allowed", detail)
        return name.lower()

    def _unsupported(self, value: Node) -> InvalidSql:
        name = str(value.get("class") or value.get("type"))[:63]
        detail = f"This kind of statement or expression is not available ({name})."
        return self._refuse(value, "not_allowed", detail)

    def _refuse(self, value: Node, code: str, detail: str) -> InvalidSql:
        return refused(self.sql, code, detail, value.get("query_location", _UNKNOWN_LOCATION))


def refused(sql: str, code: str, detail: str, location: int = _UNKNOWN_LOCATION) -> InvalidSql:
    """Return the error of a statement; `location` is a number of bytes before it."""
    if location != _UNKNOWN_LOCATION:
        before = sql.encode()[:location].decode(errors="ignore")
        line = before.count("\n") + 1
        column = len(before) - (before.rfind("\n") + 1) + 1
        detail = f"Line {line}, column {column}: {detail}"
    return InvalidSql(detail, errors=[FieldProblem("/sql", code, detail)])


def _parse_error(sql: str, tree: Mapping[str, Any]) -> InvalidSql:
    if tree["error_type"] == "not implemented":
        return refused(sql, "not_allowed", "Only SELECT statements are allowed.")
    position = int(tree.get("position") or _UNKNOWN_LOCATION)
    return refused(sql, "syntax", f"{str(tree['error_message'])[:500]}.", position)


def _texts(value: object) -> Iterator[str]:
    """Yield all texts in a tree: every name that a statement can use is among them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
