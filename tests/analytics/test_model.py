"""Random uploads to several tables, compared with a serial model: every state is correct."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from tests.analytics.serial import Serial

if TYPE_CHECKING:
    from tests.analytics.dataset_client import DatasetClient, Json

COLUMNS = {"orders": ("customer", "amount", "count"), "stock": ("pieces", "note")}


def random_row(rng: random.Random, table: str) -> Json:
    if table == "orders":
        return {"id": rng.randrange(12)}
    return {"place": rng.choice("ab"), "item": rng.randrange(5)}


def random_value(rng: random.Random, column: str) -> Any:
    if rng.random() < 0.2:
        return None
    if column in ("customer", "note"):
        return rng.choice(["ada", "bob", "", "é"])
    return rng.randrange(100) / 4 if column == "amount" else rng.randrange(5)


def random_line(rng: random.Random) -> tuple[str, str, Json, list[str]]:
    """Return a table, an operation, a row, and the columns that become null."""
    table = rng.choice(["orders", "stock"])
    op = rng.choice(["insert", "insert", "update", "update", "delete"])
    row = random_row(rng, table)
    if op == "delete":
        return table, op, row, []
    given = {column: random_value(rng, column) for column in COLUMNS[table] if rng.random() < 0.6}
    nulls = [column for column, value in given.items() if value is None]
    return table, op, {**row, **{c: v for c, v in given.items() if v is not None}}, nulls


def as_line(table: str, op: str, row: Json, nulls: list[str]) -> Json:
    line: Json = {table: row}
    if op != "insert":
        line["op"] = op
    if nulls and op == "update":
        line["null"] = nulls
    return line


def random_upload(rng: random.Random, model: Serial) -> list[Json]:
    lines = [random_line(rng) for _ in range(rng.randrange(1, 8))]
    for table, op, row, nulls in lines:
        model.do(table, op, {**row, **dict.fromkeys(nulls)})
    return [as_line(*line) for line in lines]


def check(shop: DatasetClient, states: list[Serial], **body: object) -> None:
    """Compare the results for a freshness with the model at the state that they name."""
    for table in COLUMNS:
        answer = shop.query(table, **body)
        assert answer["rows"] == states[answer["state"]].rows(table), (
            table,
            body,
            answer["state"],
        )


@pytest.mark.parametrize("seed", range(2))
def test_every_state_is_the_result_of_its_uploads_in_order(shop: DatasetClient, seed: int) -> None:
    from tests.analytics.dataset_client import SHOP

    rng = random.Random(seed)
    states = [Serial(SHOP["tables"])]
    for _ in range(25):
        model = states[-1].copy()
        shop.upload(*random_upload(rng, model))
        states.append(model)
    check(shop, states, freshness=0)
    for state in rng.sample(range(26), 6):
        check(shop, states, state=state)
    only: Json = {"count": {"$gte": 2}, "id": {"$in": [1, 2, 3, 4]}}
    expected = [
        row
        for row in states[-1].rows("orders")
        if row["count"] is not None and row["count"] >= 2 and 1 <= row["id"] <= 4
    ]
    assert shop.rows("orders", filter=only) == expected
