"""Documents equal the rows of a table in another database, whatever is committed there."""

from __future__ import annotations

import random

import pytest

from tests.sources.history import CREATE, History, documents_at
from tests.sources.upstream import Database, follow

pytestmark = pytest.mark.usefixtures("following")


def test_a_table_becomes_documents_that_follow_it(server: str, database: Database) -> None:
    database.run(
        "CREATE TABLE orders (id int PRIMARY KEY, customer text NOT NULL, total numeric(10,2))",
        "INSERT INTO orders VALUES (1, 'ann', 1.50), (2, 'bob', NULL)",
    )
    orders = follow(server, database, "orders")
    first = {"_id": 1, "id": 1, "customer": "ann", "total": {"$numberDecimal": "1.50"}}
    second = {"_id": 2, "id": 2, "customer": "bob", "total": None}
    orders.until_shows({"1": first, "2": second})
    orders.until_state("live")
    database.run(
        "INSERT INTO orders VALUES (3, 'eve', 7)",
        "UPDATE orders SET customer = 'anna' WHERE id = 1",
        "DELETE FROM orders WHERE id = 2",
    )
    third = {"_id": 3, "id": 3, "customer": "eve", "total": {"$numberDecimal": "7.00"}}
    orders.until_shows({"1": {**first, "customer": "anna"}, "3": third})


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(n, marks=pytest.mark.long) for n in range(2, 9))]
)
def test_documents_are_the_rows_at_each_place_of_the_log(
    server: str, database: Database, postgres_url: str, seed: int
) -> None:
    database.run(*CREATE)
    history = History(database, random.Random(seed))
    history.begin()
    things = follow(server, database, "things")
    checked = set[int]()

    def check() -> None:
        confirmed, is_copied, documents = documents_at(postgres_url, things)
        if is_copied:
            assert documents in history.possible(confirmed), confirmed
            checked.add(confirmed)

    for _ in range(60):
        history.step()
        check()
    things.until_shows(history.rows())
    check()
    assert len(checked) > 3
    assert things.shown()["copy_reason"] == "new"
