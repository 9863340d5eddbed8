"""A history's documents in a PostgreSQL table, and the answers of SQL to the same queries.

Doubles are stored with all their digits, so that a sum of `numeric` is exact and is rounded
once, by the cast. A double with an integral value ends in `.0`, which distinguishes it from an
integer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Any

import psycopg

from tests.realtime.live.history import SIDES, Document, Place

#: `place` sorts values of all types: null, numbers, strings, arrays, booleans. `shown` formats a
#: double as a row does: an integral one keeps its point, and all digits in the range of integers.
PREPARED = """
CREATE TEMPORARY TABLE mirror (side text, id jsonb, body jsonb, PRIMARY KEY (side, id));
CREATE TYPE pg_temp.place AS (kind int, number numeric, text text COLLATE "C",
    list text[] COLLATE "C");
CREATE FUNCTION pg_temp.place(v jsonb) RETURNS pg_temp.place LANGUAGE sql AS $$
    SELECT CASE jsonb_typeof(v)
        WHEN 'number' THEN ROW(1, v::numeric, NULL, NULL)::pg_temp.place
        WHEN 'string' THEN ROW(2, NULL, v #>> '{}', NULL)::pg_temp.place
        WHEN 'array' THEN ROW(4, NULL, NULL,
            ARRAY(SELECT jsonb_array_elements_text(v)))::pg_temp.place
        WHEN 'boolean' THEN ROW(8, v::boolean::int, NULL, NULL)::pg_temp.place
        ELSE ROW(0, NULL, NULL, NULL)::pg_temp.place END $$;
CREATE FUNCTION pg_temp.number(v jsonb) RETURNS numeric LANGUAGE sql AS $$
    SELECT CASE WHEN jsonb_typeof(v) = 'number' THEN v::numeric END $$;
CREATE FUNCTION pg_temp.shown(v float8) RETURNS jsonb LANGUAGE sql AS $$
    SELECT to_jsonb(CASE WHEN v <> trunc(v) THEN v::text::numeric
        WHEN abs(v) < 2::float8 ^ 63 THEN round(v::bigint::numeric, 1)
        ELSE round(v::text::numeric, 1) END) $$;
CREATE FUNCTION pg_temp.total(v numeric, with_doubles boolean) RETURNS jsonb LANGUAGE sql AS $$
    SELECT CASE WHEN with_doubles OR v NOT BETWEEN -2::numeric ^ 63 AND 2::numeric ^ 63 - 1
        THEN pg_temp.shown(v::float8) ELSE to_jsonb(v) END $$;
"""
TOTAL = """pg_temp.total(COALESCE(sum(pg_temp.number({v})), 0),
    COALESCE(bool_or(scale(pg_temp.number({v})) > 0), false))"""
MEAN = "pg_temp.shown(sum(pg_temp.number({v}))::float8 / NULLIF(count(pg_temp.number({v})), 0))"
FIRST = "(array_agg({v} ORDER BY pg_temp.place({v}) {way}) FILTER (WHERE {v} <> 'null'))[1]"
OPERATIONS = {
    "count": "to_jsonb(count(*))",
    "sum": TOTAL,
    "avg": MEAN,
    "min": FIRST.replace("{way}", "ASC"),
    "max": FIRST.replace("{way}", "DESC"),
}
MEASURES = {
    "count": {"op": "count"},
    "sum": {"op": "sum", "field": "n"},
    "mean": {"op": "avg", "field": "n"},
    "inside": {"op": "sum", "field": "nested.x"},
    "least": {"op": "min", "field": "n"},
    "first": {"op": "min", "field": "kind"},
    "most": {"op": "max", "field": "nested.x"},
    "last": {"op": "max", "field": "tags"},
}
#: Measures whose type is compared, too. A minimum or maximum may be any of several equal values.
TYPED = ("count", "sum", "mean", "inside")
BY = ("n", "kind", "tags", "nested.x", "public")
#: Paths of references, each with its JSON path and with the condition under which it gives a list.
LOCALS = {
    "ref": ("$.ref[*]", "jsonb_typeof(body -> 'ref') = 'array'"),
    "lines.of": (
        "$.lines[*].of[*]",
        "'array' IN (jsonb_typeof(body -> 'lines'), jsonb_typeof(body #> '{lines,of}'))",
    ),
    "_id": ("$._id", "false"),
}


@dataclass(frozen=True)
class Condition:
    """A filter, and the same condition in SQL."""

    filter: Document
    sql: str = "true"


def _has(path: str) -> str:
    return f"jsonb_path_exists(body, '{path}')"


CONDITIONS = (
    Condition({}),
    Condition({"n": {"$gte": 1}}, _has("$.n ? (@ >= 1)")),
    Condition({"n": {"$lt": 2.5}}, _has("$.n ? (@ < 2.5)")),
    Condition({"n": {"$ne": 3}}, "NOT " + _has("$.n ? (@ == 3)")),
    Condition({"n": None}, "COALESCE(body -> 'n', 'null') = 'null'"),
    Condition({"tags": "b"}, _has('$.tags ? (@ == "b")')),
    Condition({"kind": {"$in": ["a", 1]}}, _has('$.kind ? (@ == "a" || @ == 1)')),
    Condition({"nested.x": {"$exists": True}}, _has("$.nested.x")),
    Condition(
        {"$or": [{"public": True}, {"nested.x": {"$gt": 0}}]},
        f"({_has('$.public ? (@ == true)')} OR {_has('$.nested.x ? (@ > 0)')})",
    ),
)


@dataclass(frozen=True)
class SidedQuery:
    """A query of one side; `public` if its caller reads only public documents."""

    side: str
    public: bool
    condition: Condition
    sort: tuple[str, int] | None
    offset: int
    limit: int | None

    def common(self) -> Document:
        result: Document = {"filter": self.condition.filter, "offset": self.offset}
        if self.sort is not None:
            result["sort"] = [self.sort]
        if self.limit is not None:
            result["limit"] = self.limit
        return result

    def _visible(self, side: str) -> str:
        hidden = " AND body -> 'public' = 'true'" if self.public and side == "ruled" else ""
        return f"(SELECT id, body FROM mirror WHERE side = '{side}'{hidden})"

    def _matching_rows(self) -> str:
        return f"{self._visible(self.side)} AS own WHERE {self.condition.sql}"

    def _window(self) -> str:
        return f"OFFSET {self.offset} LIMIT {'ALL' if self.limit is None else self.limit}"


@dataclass(frozen=True)
class GroupedQuery(SidedQuery):
    by: tuple[str, ...]
    measures: tuple[str, ...]

    def members(self) -> Document:
        measures = {name: MEASURES[name] for name in self.measures}
        return {**self.common(), "group": {"by": list(self.by), "measures": measures}}

    def sql(self) -> str:
        keys = [f"COALESCE({_at(path)}, 'null') AS k{n}" for n, path in enumerate(self.by)]
        names = [f"k{n}" for n in range(len(keys))]
        measures = [f"{_measure(MEASURES[name])} AS {name}" for name in self.measures]
        order = [f"pg_temp.place({name})" for name in names] or ["1"]
        if self.sort is not None:
            order.insert(0, f"pg_temp.place({self.sort[0]}) {_direction(self.sort[1])}")
        return (
            f"SELECT * FROM (SELECT {', '.join([*names, *measures])}"
            f" FROM (SELECT {', '.join(['body', *keys])} FROM {self._matching_rows()}) AS keyed"
            f" GROUP BY {', '.join(names) or '()'} HAVING count(*) > 0) AS rows"
            f" ORDER BY {', '.join(order)} {self._window()}"
        )

    def read(self, row: tuple[Any, ...]) -> Document:
        """Return the document for a row of the SQL answer."""
        document: Document = {}
        for path, value in zip(self.by, row, strict=False):
            parent, _, name = path.rpartition(".")
            (document.setdefault(parent, {}) if parent else document)[name] = value
        document.update(zip(self.measures, row[len(self.by) :], strict=True))
        return self.plain(document)

    def plain(self, document: Document) -> Document:
        """Normalize values of which several equal forms are valid."""
        return {
            name: value if name in TYPED else simplest(value) for name, value in document.items()
        }


@dataclass(frozen=True)
class Lookup(SidedQuery):
    looked_up: tuple[tuple[str, str], ...]

    def members(self) -> Document:
        lookup = [
            {"from": side, "local": local, "as": f"with{n}"}
            for n, (side, local) in enumerate(self.looked_up)
        ]
        return {**self.common(), "lookup": lookup}

    def sql(self) -> str:
        result = ", ".join(["body", *(self._looked_up(*one) for one in self.looked_up)])
        order = "pg_temp.place(id)"
        if self.sort is not None:
            order = f"pg_temp.place({_at(self.sort[0])}) {_direction(self.sort[1])}, {order}"
        return f"SELECT {result} FROM {self._matching_rows()} ORDER BY {order} {self._window()}"

    def _looked_up(self, side: str, local: str) -> str:
        path, is_list = LOCALS[local]
        other = f"{self._visible(side)} AS other"
        several = (
            "SELECT COALESCE(jsonb_agg(other.body ORDER BY at), '[]')"
            f" FROM jsonb_path_query(own.body, '{path}') WITH ORDINALITY AS r (id, at)"
            f" JOIN {other} ON other.id = r.id"
        )
        one = f"SELECT other.body FROM {other} WHERE other.id = own.body #> {_names(local)}"
        return f"CASE WHEN {is_list} THEN ({several}) ELSE ({one}) END"

    def read(self, row: tuple[Any, ...]) -> Document:
        """Return the document for a row of the SQL answer."""
        return {**row[0], **{f"with{n}": included for n, included in enumerate(row[1:])}}

    def plain(self, document: Document) -> Document:
        return document


Query = GroupedQuery | Lookup


def _names(path: str) -> str:
    return "'{" + path.replace(".", ",") + "}'"


def _at(path: str) -> str:
    return f"(body #> {_names(path)})"


def _direction(direction: int) -> str:
    return "ASC" if direction > 0 else "DESC"


def _measure(measure: dict[str, str]) -> str:
    return OPERATIONS[measure["op"]].replace("{v}", _at(measure.get("field", "n")))


def random_group(rng: Random, *, public: bool) -> GroupedQuery:
    measures = tuple(rng.sample(sorted(MEASURES), rng.randrange(1, 6)))
    numbers = [name for name in measures if name in TYPED]
    sort = (rng.choice(numbers), rng.choice([1, -1])) if numbers else None
    by = tuple(rng.sample(BY, rng.randrange(3)))
    return GroupedQuery(**_random_parts(rng, sort), public=public, by=by, measures=measures)


def random_lookup(rng: Random, *, public: bool) -> Lookup:
    looked_up = [(side, local) for side in SIDES for local in LOCALS]
    some = tuple(rng.sample(looked_up, rng.randrange(1, 4)))
    sort = ("n", rng.choice([1, -1]))
    return Lookup(**_random_parts(rng, sort), public=public, looked_up=some)


def _random_parts(rng: Random, sort: tuple[str, int] | None) -> dict[str, Any]:
    """Draw the common parts of a query: half are sorted, half have a window."""
    windowed = rng.random() < 0.5
    return {
        "side": rng.choice(SIDES),
        "condition": rng.choice(CONDITIONS),
        "sort": sort if rng.random() < 0.5 else None,
        "offset": rng.randrange(3) if windowed else 0,
        "limit": rng.randrange(1, 6) if windowed else None,
    }


def simplest(value: object) -> object:
    """Replace doubles with integral values by integers, at any depth."""
    if isinstance(value, list):
        return [simplest(member) for member in value]
    if isinstance(value, dict):
        return {name: simplest(member) for name, member in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value


def exact(value: object) -> str:
    """Return a value as JSON with all digits of its doubles."""
    if isinstance(value, dict):
        members = (f"{json.dumps(name)}: {exact(member)}" for name, member in value.items())
        return "{" + ", ".join(members) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(exact, value)) + "]"
    if isinstance(value, float):
        digits = format(Decimal(value), "f")
        return digits if "." in digits else digits + ".0"
    return json.dumps(value)


class Mirror:
    """The table, on its own connection."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        self._connection.execute(PREPARED.encode())

    def take(self, bodies: dict[Place, Document], places: Iterable[Place]) -> None:
        """Copy the current documents at these places; delete those that no longer exist."""
        for side, key in set(places):
            where = {"side": side, "id": json.dumps(key)}
            self._connection.execute(
                b"DELETE FROM mirror WHERE side = %(side)s AND id = %(id)s::jsonb", where
            )
            if (side, key) in bodies:
                self._connection.execute(
                    b"INSERT INTO mirror VALUES (%(side)s, %(id)s::jsonb, %(body)s::jsonb)",
                    {**where, "body": exact(bodies[side, key])},
                )

    def answer(self, query: Query) -> list[Document]:
        rows = self._connection.execute(query.sql().encode()).fetchall()
        return [query.read(row) for row in rows]


@contextmanager
def mirrored(url: str) -> Iterator[Mirror]:
    with psycopg.connect(url, autocommit=True) as connection:
        yield Mirror(connection)
