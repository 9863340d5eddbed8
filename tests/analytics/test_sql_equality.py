"""SQL has the answers of JSON queries at every state, and of PostgreSQL on the same rows."""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from analytics.pipeline.decisions import PipelineStep
from tests.analytics import pipeline_steps
from tests.analytics.dataset_client import SHOP, make_dataset
from tests.analytics.serial import Serial
from tests.analytics.sql_corpus import CORPUS
from tests.analytics.test_id_keys import WEB
from tests.analytics.test_id_keys import Model as WebModel
from tests.analytics.test_id_keys import random_line as random_web_line
from tests.analytics.test_id_keys import send as send_web
from tests.analytics.test_model import random_upload
from tests.analytics.test_sql import rows, send, sql

if TYPE_CHECKING:
    from tests.analytics.dataset_client import DatasetClient, Json

#: Seeds and stages that notice no fault alone: `python -m scripts.mutants`.
LONG = pytest.mark.long
STEPS = (PipelineStep.REMAP, PipelineStep.SORT, PipelineStep.MERGE, PipelineStep.AUTHORITY)
OPERATORS = {"$eq": "=", "$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
FUNCTIONS = {
    "count": "count({})",
    "sum": "sum({})",
    "min": "min({})",
    "max": "max({})",
    "avg": "avg({})",
    "distinct": "count(DISTINCT {})",
}
VALUES: dict[str, list[Any]] = {
    "id": [3, 7, 11],
    "customer": ["ada", "bob", "", "é"],
    "amount": [0.25, 10, 12.5],
    "count": [0, 2, 4],
    "place": ["a", "b"],
    "item": [0, 3],
    "pieces": [1, 3],
    "note": ["ada", "é"],
}
NUMBERS = ("amount", "count", "pieces", "item")


def quoted(name: str) -> str:
    return f'"{name}"'


def condition(rng: random.Random, columns: list[str]) -> tuple[Json, str, list[Any]]:
    """Return a filter, the same as SQL, and the parameters of that."""
    name = rng.choice(columns)
    kind = rng.choice(["compare", "in", "exists", "null", "ne"])
    value = rng.choice(VALUES[name])
    column = quoted(name)
    if kind == "compare":
        operator = rng.choice([*OPERATORS])
        return {name: {operator: value}}, f"{column} {OPERATORS[operator]} ?", [value]
    if kind == "in":
        chosen = rng.sample(VALUES[name], 2)
        return {name: {"$in": chosen}}, f"{column} IN (?, ?)", chosen
    if kind == "exists":
        return {name: {"$exists": True}}, f"{column} IS NOT NULL", []
    if kind == "null":
        return {name: None}, f"{column} IS NULL", []
    return {name: {"$ne": value}}, f"{column} IS DISTINCT FROM ?", [value]


def random_filter(rng: random.Random, columns: list[str]) -> tuple[Json, str, list[Any]]:
    parts = [condition(rng, columns) for _ in range(rng.randrange(3))]
    if not parts:
        return {}, "true", []
    word = rng.choice(["and", "or"])
    body = {f"${word}": [part[0] for part in parts]}
    text = f" {word.upper()} ".join(f"({part[1]})" for part in parts)
    return body, text, [value for part in parts for value in part[2]]


def random_query(rng: random.Random, table: str) -> tuple[Json, str, list[Any]]:
    """Return a query, and the same as SQL with its parameters."""
    definition = SHOP["tables"][table]
    columns = [name for name in definition["columns"] if name in VALUES]
    where, text, parameters = random_filter(rng, columns)
    if rng.random() < 0.5:
        name, direction = rng.choice(columns), rng.choice([1, -1])
        key = ", ".join(map(quoted, definition["key"]))
        order = f"{quoted(name)} {'DESC' if direction < 0 else 'ASC'} NULLS LAST, {key}"
        chosen = [*dict.fromkeys(rng.choices(columns, k=3))]
        limit = rng.randrange(1, 9)
        query = {"columns": chosen, "filter": where, "order": [[name, direction]], "limit": limit}
        selected = ", ".join(map(quoted, chosen))
        statement = f"SELECT {selected} FROM {table} WHERE {text} ORDER BY {order} LIMIT {limit}"
        return query, statement, parameters
    by = rng.sample(columns, rng.randrange(3))
    aggregates = {}
    for number in range(rng.randrange(1, 4)):
        op = rng.choice([*FUNCTIONS])
        usable = [c for c in columns if op not in ("sum", "avg") or c in NUMBERS]
        aggregates[f"a{number}"] = {"op": op, "column": rng.choice(usable)}
    query = {"group_by": by, "aggregates": aggregates, "filter": where}
    selected = ", ".join(
        [
            *map(quoted, by),
            *(
                f"{FUNCTIONS[aggregate['op']].format(quoted(aggregate['column']))} AS {name}"
                for name, aggregate in aggregates.items()
            ),
        ]
    )
    grouped = f" GROUP BY {', '.join(map(quoted, by))}" if by else ""
    order = f" ORDER BY {', '.join(f'{quoted(n)} NULLS LAST' for n in by)}" if by else ""
    return query, f"SELECT {selected} FROM {table} WHERE {text}{grouped}{order}", parameters


def compare(shop: DatasetClient, rng: random.Random, **options: object) -> None:
    table = rng.choice(["orders", "stock"])
    query, statement, parameters = random_query(rng, table)
    expected = shop.query(table, **query, **options)
    result = sql(shop, statement, *parameters, **options)
    assert result["state"] == expected["state"]
    assert same(result["rows"], expected["rows"]), (statement, parameters, options)


def same(actual: Any, expected: Any) -> bool:
    """Return whether two results are equal, up to the order of additions."""
    if isinstance(actual, float) and isinstance(expected, int | float):
        return math.isclose(actual, expected, rel_tol=1e-12)
    if isinstance(actual, list) and isinstance(expected, list | tuple):
        return len(actual) == len(expected) and all(map(same, actual, expected))
    if isinstance(actual, dict) and isinstance(expected, dict):
        return [*actual] == [*expected] and same([*actual.values()], [*expected.values()])
    return bool(actual == expected)


@pytest.mark.parametrize("seed", [pytest.param(0, marks=LONG), 1, pytest.param(2, marks=LONG)])
def test_random_queries_have_the_answers_of_sql_at_every_stage(
    shop: DatasetClient, seed: int
) -> None:
    rng = random.Random(seed)
    model = Serial(SHOP["tables"])
    for number in range(1, 16):
        shop.upload(*random_upload(rng, model))
        for step in STEPS:
            if rng.random() < 0.25:
                pipeline_steps.do(shop, step)
        for _ in range(3):
            compare(shop, rng, freshness=0)
        compare(shop, rng, freshness="any")
        compare(shop, rng, state=rng.randrange(max(number - 3, 0), number + 1))


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=LONG)])
def test_tables_with_ids_have_the_same_rows_at_every_stage(server: str, seed: int) -> None:
    rng, web, model = random.Random(seed), make_dataset(server, **WEB), WebModel()
    for _ in range(12):
        lines = [random_web_line(rng) for _ in range(rng.randrange(1, 8))]
        model.do(lines)
        send_web(web, lines)
        for step in STEPS:
            if rng.random() < 0.4:
                pipeline_steps.do(web, step)
        for table, definition in WEB["tables"].items():
            key = ", ".join(map(quoted, definition["key"]))
            assert rows(web, f"SELECT * FROM {table} ORDER BY {key}") == model.rows.rows(table)
        by_visitor = 'SELECT * FROM visits__by_visitor ORDER BY page, "at"'
        assert rows(web, by_visitor) == model.rows.rows("visits")
        for name in WEB["id_keys"]:
            expected = [{"key": key, "id": id_} for id_, key in enumerate(model.keys[name])]
            assert rows(web, f"SELECT * FROM {name} ORDER BY id") == expected
        linked = 'SELECT count(*) AS n FROM links JOIN page ON "to" = key'
        assert rows(web, linked) == [{"n": len(model.rows.rows("links"))}]


@pytest.fixture
def postgres(postgres_url: str) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("SET TIME ZONE 'UTC'")
        yield connection
        connection.rollback()


def corpus_rows(rng: random.Random) -> tuple[list[Json], list[Json]]:
    """Return orders and stock with nulls, ties, extremes, and times around midnight."""
    begin = datetime.datetime(2026, 10, 24, 21, tzinfo=datetime.UTC)
    orders = []
    for number in range(60):
        moment = begin + datetime.timedelta(minutes=37 * number)
        row = {
            "id": number * 7 - 100,
            "customer": rng.choice(["ada", "bob", "Bob", "", "é", "z%_\\", None]),
            "amount": rng.choice([0.1, 0.5, 2.5, -2.5, 1e15, 1e-9, None]),
            "count": rng.choice([0, 1, -1, 2**31 - 1, -(2**31), 7, None]),
            "paid": rng.choice([True, False, None]),
            "day": rng.choice(["2024-02-29", "2026-12-31", "1969-12-31", "2026-01-01", None]),
            "at": rng.choice([moment.isoformat(), None, "1969-12-31T23:59:59.999999Z"]),
        }
        orders.append({name: value for name, value in row.items() if value is not None})
    stock = [
        {
            "place": place,
            "item": item,
            "pieces": rng.choice([1, 1, 2, 5]),
            "note": rng.choice("abc"),
        }
        for place in ("a", "b", "C")
        for item in range(-3, 6)
    ]
    return orders, stock


def load(connection: psycopg.Connection[tuple[Any, ...]], table: str, lines: list[Json]) -> None:
    types = {"string": 'text COLLATE "C"', "double": "float8", "timestamp": "timestamptz"}
    kinds = {"int64": "int8", "int32": "int4", "bool": "bool", "date": "date"}
    columns = SHOP["tables"][table]["columns"]
    column_definitions = ", ".join(
        f'"{name}" {types.get(k) or kinds[k]}' for name, k in columns.items()
    )
    connection.execute(f"CREATE TEMP TABLE {table} ({column_definitions})")
    placeholders = ", ".join(["%s"] * len(columns))
    with connection.cursor() as cursor:
        values = [[line.get(name) for name in columns] for line in lines]
        cursor.executemany(f"INSERT INTO {table} VALUES ({placeholders})", values)


def as_json(value: Any) -> Any:
    """Return a value of PostgreSQL in the form of our answers."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, datetime.datetime):
        text = value.isoformat(timespec="microseconds")
        return text.replace("+00:00", "Z")
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, list):
        return [as_json(item) for item in value]
    return value


def as_number(value: Any) -> Any:
    """Return an exact number as PostgreSQL's in `as_json`: the scales of quotients differ."""
    if isinstance(value, dict) and len(value) == 1:
        name, text = next(iter(value.items()))
        if name in ("$numberDecimal", "$numberLong"):
            return float(text)
    if isinstance(value, list):
        return [as_number(item) for item in value]
    return value


@pytest.mark.parametrize(
    "stage",
    [pytest.param("unsorted", marks=LONG), pytest.param("authority", marks=LONG), "both"],
)
def test_statements_have_the_answers_of_postgresql(
    shop: DatasetClient, postgres: psycopg.Connection[tuple[Any, ...]], stage: str
) -> None:
    orders, stock = corpus_rows(random.Random(5))
    load(postgres, "orders", orders)
    load(postgres, "stock", stock)
    half = len(orders) // 2
    shop.insert("stock", *stock)
    # What is in the authority is partly replaced later.
    shop.insert(
        "orders", *orders[:half], *({"id": row["id"], "customer": "x"} for row in orders[-5:])
    )
    if stage != "unsorted":
        pipeline_steps.drain(shop)
    shop.insert("orders", *orders[half:])
    if stage == "authority":
        pipeline_steps.drain(shop)
    failed = []
    for statement in CORPUS:
        with postgres.transaction(force_rollback=True):
            expected = [[as_json(v) for v in row] for row in postgres.execute(statement).fetchall()]
        answer = send(shop, statement)
        if answer.status_code != 200:
            failed.append((statement, answer.json()["detail"], expected[:5]))
            continue
        items = [[as_number(v) for v in row.values()] for row in answer.json()["rows"]]
        if not same(items, expected):
            failed.append((statement, items[:5], expected[:5]))
    assert failed == [], "\n".join(map(repr, failed))
    assert len(CORPUS) >= 150
