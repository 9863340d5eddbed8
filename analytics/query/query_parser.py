"""Parses query bodies."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from analytics.query.files import StateSelector
from analytics.query.filters import RowFilter, read_filter
from analytics.query.grouping import FUNCTIONS, AggregateExpression, type_of
from analytics.query.literals import InvalidLiteral, moment
from analytics.schema import AnalyticsTable
from foundation.errors import FieldProblem, InvalidBody, InvalidSort
from foundation.json_types import JsonObject, JsonValue

MEMBERS = (
    "table",
    "columns",
    "filter",
    "group_by",
    "aggregates",
    "having",
    "order",
    "limit",
    "freshness",
    "state",
    "as_of",
    "since",
)
MOMENTS = ("freshness", "state", "as_of")
USUAL_LIMIT, MAX_LIMIT, MAX_FILE_LIMIT = 1_000, 10_000, 1_000_000
MAX_AGGREGATES = 64
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}\Z")


@dataclass(frozen=True, slots=True)
class QueryFilters:
    """The filters on rows and on groups.

    Keys stored as ids are placeholders in `where` and `having` until `resolved`.
    """

    where: RowFilter
    having: RowFilter
    #: The keys used in the filters, by ID-key.
    keys: Mapping[str, Collection[int | str]]
    read: Callable[[Callable[[str, int | str], int]], tuple[RowFilter, RowFilter]]

    def resolve(self, ids: Mapping[str, Mapping[int | str, int]]) -> tuple[RowFilter, RowFilter]:
        """Return both filters with ids in place of keys."""
        if not self.keys:
            return self.where, self.having
        return self.read(lambda name, key: ids[name][key])


@dataclass(frozen=True, slots=True)
class AnalyticsQuery:
    """A query, checked against its table."""

    table: AnalyticsTable
    #: The tables of the ID-keys that the query uses.
    id_tables: Mapping[str, AnalyticsTable]
    wanted: StateSelector
    filters: QueryFilters
    #: The columns of the rows, if the query does not group.
    columns: tuple[str, ...]
    group_by: tuple[str, ...] | None = None
    aggregates: tuple[AggregateExpression, ...] = ()
    order: tuple[tuple[str, bool], ...] = ()
    limit: int = USUAL_LIMIT

    @property
    def ids(self) -> Mapping[str, str]:
        """The columns of the result that may contain ids, with their ID-keys."""
        ids = self.table.ids
        return ids if self.group_by is None else {c: ids[c] for c in self.group_by if c in ids}

    @property
    def needed(self) -> frozenset[str]:
        """The columns to read, besides those of the filter and the key."""
        if self.group_by is None:
            return frozenset((*self.columns, *(name for name, _ in self.order)))
        used = [a.column for a in self.aggregates if a.column is not None]
        return frozenset((*self.group_by, *used))

    @property
    def ties(self) -> tuple[str, ...]:
        """The columns that break ties of the order."""
        return self.table.key if self.group_by is None else self.group_by

    @property
    def types(self) -> dict[str, pa.DataType]:
        """The table's columns, as they are stored."""
        return {field.name: field.type for field in self.table.arrow}

    @property
    def result(self) -> pa.Schema:
        """The columns of the result before ids are replaced with keys, and those of its order."""
        if self.group_by is None:
            names = dict.fromkeys((*self.columns, *(n for n, _ in self.order), *self.ties))
            return pa.schema([self.table.arrow.field(name) for name in names])
        groups = [(name, self.types[name]) for name in self.group_by]
        return pa.schema([*groups, *((a.name, type_of(a, self.types)) for a in self.aggregates)])


def read_query(
    body: JsonObject, tables: Mapping[str, AnalyticsTable], max_limit: int
) -> AnalyticsQuery:
    """Parse a query, or raise `InvalidBody`."""
    _check_members(body)
    table = _table(body.get("table"), tables)
    types = table.types
    limit = _integer(body.get("limit"), "/limit", 1, max_limit, USUAL_LIMIT)
    wanted = read_selector(body)
    id_tables = {name: tables[name] for name in table.id_keys}
    if "group_by" not in body and "aggregates" not in body:
        if "having" in body:
            raise _wrong("/having", "`having` requires `group_by`; use `filter` instead.")
        filters = _filters(body, table, types, {}, ())
        columns = _columns(body.get("columns"), table)
        # Ties are broken by the key, so rows may be ordered by columns they do not show.
        order = _order(body.get("order"), types)
        return AnalyticsQuery(table, id_tables, wanted, filters, columns, order=order, limit=limit)
    if "columns" in body:
        raise _wrong("/columns", "With groups, only their columns and aggregates can be returned.")
    by = _names(body.get("group_by") or [], "/group_by", types)
    aggregates = _aggregates(body.get("aggregates"), types, table.ids)
    result_types = {name: types[name] for name in by}
    for aggregate in aggregates:
        if aggregate.name in result_types:
            raise _wrong(f"/aggregates/{aggregate.name}", "A column already has this name.")
        result_types[aggregate.name] = type_of(aggregate, types)
    filters = _filters(body, table, types, result_types, by)
    order = _order(body.get("order"), result_types)
    return AnalyticsQuery(table, id_tables, wanted, filters, (), by, aggregates, order, limit)


def _filters(
    body: JsonObject,
    table: AnalyticsTable,
    types: Mapping[str, pa.DataType],
    result_types: Mapping[str, pa.DataType],
    by: Collection[str],
) -> QueryFilters:
    """Return the filters over rows and groups, to be resolved with the ids of keys."""

    def read(id_of: Callable[[str, int | str], int]) -> tuple[RowFilter, RowFilter]:
        ids = {column: partial(id_of, name) for column, name in table.ids.items()}
        group_ids = {column: ids[column] for column in by if column in ids}
        return (
            read_filter(body.get("filter") or {}, types, "/filter", ids),
            read_filter(body.get("having") or {}, result_types, "/having", group_ids),
        )

    keys: dict[str, set[int | str]] = {}

    def collect(name: str, key: int | str) -> int:
        keys.setdefault(name, set()).add(key)
        return 0

    where, having = read(collect)
    return QueryFilters(where, having, keys, read)


def _check_members(body: JsonObject) -> None:
    unknown = [name for name in body if name not in MEMBERS]
    if unknown:
        raise InvalidBody(
            errors=[FieldProblem(f"/{name}", "unknown_field", "Unknown field.") for name in unknown]
        )


def _table(name: JsonValue, tables: Mapping[str, AnalyticsTable]) -> AnalyticsTable:
    if not isinstance(name, str):
        raise _wrong("/table", "Expected the name of a table.")
    if name not in tables:
        raise _wrong("/table", f"The table {name[:63]!r} does not exist.")
    return tables[name]


def read_selector(body: JsonObject) -> StateSelector:
    """Return the state that a body asks for, or raise `InvalidBody`."""
    selectors = [name for name in MOMENTS if name in body]
    if len(selectors) > 1:
        raise _wrong(f"/{selectors[1]}", f"Cannot be combined with `{selectors[0]}`.")
    since = _integer(body.get("since"), "/since", 0, 2**62, 0)
    if "state" in body:
        return StateSelector(state=_integer(body["state"], "/state", 0, 2**62, 0), since=since)
    if "as_of" in body:
        text = body["as_of"]
        try:
            return StateSelector(as_of=moment(text if isinstance(text, str) else ""))
        except InvalidLiteral as error:
            raise _wrong("/as_of", f"{error}.") from None
    freshness = body.get("freshness", 0)
    if freshness == "any":
        return StateSelector(any=True, since=since)
    if isinstance(freshness, bool) or not isinstance(freshness, int | float) or freshness < 0:
        raise _wrong("/freshness", 'Expected seconds, or "any".')
    return StateSelector(freshness_s=min(float(freshness), 1e9), since=since)


def _columns(value: JsonValue, table: AnalyticsTable) -> tuple[str, ...]:
    if value is None:
        return tuple(table.columns)
    names = _names(value, "/columns", table.columns)
    if not names:
        raise _wrong("/columns", "At least one column is required.")
    return names


def _names(value: JsonValue, pointer: str, columns: Mapping[str, object]) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise _wrong(pointer, "Expected a list of columns.")
    names: list[str] = []
    for index, name in enumerate(value):
        if not isinstance(name, str) or name not in columns:
            raise _wrong(f"{pointer}/{index}", "The column does not exist.")
        if name in names:
            raise _wrong(f"{pointer}/{index}", "The column is named twice.")
        names.append(name)
    return tuple(names)


def _aggregates(
    members: JsonValue, types: Mapping[str, pa.DataType], ids: Mapping[str, str]
) -> tuple[AggregateExpression, ...]:
    if members is None:
        return (AggregateExpression("count", "count", None),)
    if not isinstance(members, dict) or not 0 < len(members) <= MAX_AGGREGATES:
        raise _wrong("/aggregates", f"Expected an object with 1 to {MAX_AGGREGATES} members.")
    return tuple(_aggregate(name, value, types, ids) for name, value in members.items())


def _aggregate(
    name: str, value: JsonValue, types: Mapping[str, pa.DataType], ids: Mapping[str, str]
) -> AggregateExpression:
    place = f"/aggregates/{name}"
    if not _NAME.match(name):
        raise _wrong(place, "Expected a letter followed by letters, digits and underscores.")
    if not isinstance(value, dict) or not set(value) <= {"op", "column"}:
        raise _wrong(place, "Expected an object with `op` and `column`.")
    op, column = value.get("op"), value.get("column")
    if not isinstance(op, str) or op not in FUNCTIONS:
        raise _wrong(f"{place}/op", f"Expected one of {', '.join(FUNCTIONS)}.")
    if column is None and op == "count":
        return AggregateExpression(name, str(op), None)
    if not isinstance(column, str) or column not in types:
        raise _wrong(f"{place}/column", "The column does not exist.")
    if column in ids and op not in ("count", "distinct"):
        raise _wrong(f"{place}/column", "Keys that are stored as ids can only be counted.")
    kind = types[column]
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if op in ("sum", "avg") and not is_number:
        raise _wrong(f"{place}/column", f"The column has type {kind}, which is not numeric.")
    return AggregateExpression(name, str(op), column)


def _order(given: JsonValue, known: Mapping[str, object]) -> tuple[tuple[str, bool], ...]:
    pairs = list(given.items()) if isinstance(given, dict) else given or []
    if not isinstance(pairs, list):
        raise _unsortable("/order", 'Expected a list such as [["at", -1]].')
    return tuple(_pair(pair, f"/order/{place}", known) for place, pair in enumerate(pairs))


def _pair(pair: object, pointer: str, known: Mapping[str, object]) -> tuple[str, bool]:
    match pair:
        case (str(name), 1 | -1 as direction) if not isinstance(direction, bool):
            if name not in known:
                raise _unsortable(pointer, f"The column {name[:63]!r} does not exist.")
            return name, direction == -1
        case [str(name), 1 | -1 as direction] if not isinstance(direction, bool):
            return _pair((name, direction), pointer, known)
    raise _unsortable(pointer, "Expected a column, and 1 or -1.")


def _integer(value: JsonValue, pointer: str, least: int, most: int, default: int) -> int:
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise _wrong(pointer, f"Expected an integer from {least} to {most}.")
    return value


def _wrong(pointer: str, detail: str) -> InvalidBody:
    return InvalidBody(detail, errors=[FieldProblem(pointer, "invalid", detail)])


def _unsortable(pointer: str, detail: str) -> InvalidSort:
    return InvalidSort(detail, errors=[FieldProblem(pointer, "invalid_sort", detail)])
