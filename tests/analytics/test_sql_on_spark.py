"""SQL on Spark: the answers of DuckDB, or a reason why not."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import psutil
import pytest
from django.db import connections

from analytics.locations import folder_of
from analytics.pipeline.ledger import ALIAS
from analytics.pipeline.scans import ScanRunner
from analytics.sql.spark import driver_process
from tests.analytics import pipeline_steps
from tests.analytics.dataset_client import PARQUET, make_dataset
from tests.analytics.pipeline_steps import Inline
from tests.analytics.random_sql import RandomSql
from tests.analytics.sql_corpus import CORPUS
from tests.analytics.test_id_keys import WEB, random_line
from tests.analytics.test_id_keys import send as send_web
from tests.analytics.test_scans import nobody_leading
from tests.analytics.test_sql import send as send_statement
from tests.analytics.test_sql_equality import corpus_rows, same
from tests.caller import problem
from tests.waiting import wait_until

if TYPE_CHECKING:
    import requests

    from tests.analytics.dataset_client import DatasetClient

TIMEOUT_S = 200
#: What the everyday suite leaves to the long one.
LONG = pytest.mark.long
#: Joins without an end, of rows that match several others. Each row of the first table takes Spark
#: hours, between which it does not notice that it is interrupted.
ENDLESS = "SELECT sum(s0.item * s1.item) AS n FROM stock AS s0 " + " ".join(
    f"JOIN stock AS s{n} ON s{n}.pieces = s{n - 1}.pieces" for n in range(1, 15)
)


@pytest.fixture(scope="module")
def scans() -> Iterator[ScanRunner]:
    """What answers the requests of a pipeline, with one driver for all tests."""
    runner = ScanRunner(Inline(), lambda: None)
    with nobody_leading(), pytest.MonkeyPatch.context() as change:
        # Tests that run at the same time keep the machine busy.
        change.setattr(driver_process, "NICENESS", 0)
        try:
            yield runner
        finally:
            runner.close()


class Polling:
    """Answers requests in a thread, which reads settings: they change between its rounds."""

    def __init__(self, scans: ScanRunner, settings: pytest.MonkeyPatch) -> None:
        self._scans = scans
        self._settings = settings
        self._round = threading.Lock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._poll)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def change(self, name: str, value: str) -> None:
        with self._round:
            self._settings.setenv(name, value)

    def _poll(self) -> None:
        while not self._stopping.wait(0.02):
            with self._round:
                self._scans.poll()
        connections[ALIAS].close()


@pytest.fixture
def polling(scans: ScanRunner, settings_environment: pytest.MonkeyPatch) -> Iterator[Polling]:
    settings_environment.setenv("RILLBASE_ANALYTICS_WORKERS", "spark")
    with Polling(scans, settings_environment) as running:
        yield running


@pytest.fixture
def shop(shop: DatasetClient, polling: Polling) -> DatasetClient:
    """A dataset with rows at every stage, some of which replace others."""
    orders, stock = corpus_rows(random.Random(5))
    half = len(orders) // 2
    shop.insert("stock", *stock)
    replaced = ({"id": row["id"], "customer": "x"} for row in orders[-5:])
    shop.insert("orders", *orders[:half], *replaced)
    pipeline_steps.drain(shop)
    shop.insert("orders", *orders[half:])
    return shop


def send(shop: DatasetClient, statement: str, *parameters: object, **more: object) -> Any:
    """Send a statement. On a busy machine, Spark starts slowly."""
    return send_statement(shop, statement, *parameters, **{"timeout": TIMEOUT_S, **more})


def sql(shop: DatasetClient, statement: str, *parameters: object, **more: object) -> Any:
    answer = send(shop, statement, *parameters, **more)
    assert answer.status_code == 200, answer.text
    return answer.json()


def compare(shop: DatasetClient, statements: Sequence[str]) -> int:
    """Compare the engines' answers. Return how many statements Spark has executed."""
    answered, wrong = 0, []
    for statement in statements:
        on_spark = send(shop, statement, engine="spark")
        if on_spark.json().get("code") == "invalid_sql" and "on Spark" in on_spark.text:
            continue
        on_duckdb = send(shop, statement, engine="duckdb")
        answered += 1
        if not are_alike(on_spark, on_duckdb):
            wrong.append((statement, on_spark.text[:1_000], on_duckdb.text[:1_000]))
    assert wrong == [], "\n".join(map(repr, wrong))
    return answered


def are_alike(on_spark: requests.Response, on_duckdb: requests.Response) -> bool:
    """Return whether both have the same rows of the same types, or both an error of a value."""
    first, second = on_spark.json(), on_duckdb.json()
    if on_duckdb.status_code != 200:
        return on_spark.status_code == on_duckdb.status_code and first["code"] == second["code"]
    names = ("state", "columns", "truncated")
    return (
        on_spark.status_code == 200
        and (first["engine"], second["engine"]) == ("spark", "duckdb")
        and [first[name] for name in names] == [second[name] for name in names]
        and same(first["rows"], second["rows"])
    )


@pytest.mark.parametrize(
    ("step", "answered"), [pytest.param(1, 143, marks=LONG), pytest.param(12, 9)]
)
def test_statements_have_the_same_answers(shop: DatasetClient, step: int, answered: int) -> None:
    assert compare(shop, CORPUS[::step]) >= answered


@pytest.mark.parametrize(("count", "seed"), [pytest.param(300, None, marks=LONG), (20, 7)])
def test_random_statements_have_the_same_answers(
    shop: DatasetClient, count: int, seed: int | None
) -> None:
    statements = RandomSql(seed)
    assert compare(shop, [statements.statement() for _ in range(count)]) >= 0.9 * count


def test_special_values_have_the_same_answers(shop: DatasetClient) -> None:
    shop.insert(
        "orders",
        *({"id": 1_000 + n, "amount": value} for n, value in enumerate([-0.0, 0.0, 1e308, -1e308])),
    )
    quotients = "1 / amount AS q, amount / 0 AS z, 5 // 0 AS w, 5 % 0 AS m, amount * 1e10 / 0 AS n"
    roundings = "floor(amount) AS f, ceil(amount) AS c, round(amount, 1) AS r, round(amount) AS s"
    patterns = "customer LIKE '%a%a%' AS a, customer NOT ILIKE '%B%O%' AS b, customer LIKE '%' AS c"
    infinite = "WITH a AS (SELECT id, amount / 0 AS x FROM orders)"
    statements = [
        f"SELECT id, {quotients} FROM orders ORDER BY id",
        f"SELECT id, {roundings} FROM orders ORDER BY id",
        # Numbers that JSON does not have: infinity and NaN.
        f"{infinite} SELECT x, count(*) AS n FROM a GROUP BY x ORDER BY x DESC",
        f"{infinite} SELECT min(x), max(x), count(x) FROM a WHERE x >= 5 OR x = x",
        "SELECT amount, count(*) AS n FROM orders GROUP BY amount ORDER BY amount",
        f"SELECT id, {patterns} FROM orders ORDER BY id",
        "SELECT sum(9223372036854775807) AS s FROM orders",
        "SELECT sum(count + 2147483647) AS a, sum(-1 + (count + 2147483647)) AS b FROM orders",
        "SELECT sum(count + 2147483647) OVER () AS a FROM orders",
        "SELECT sum(DISTINCT count + 2147483647) AS a FROM orders",
        "SELECT id, id * 9223372036854775807 AS p FROM orders ORDER BY id",
        "SELECT sqrt(amount) FROM orders",
    ]
    assert compare(shop, statements) == len(statements)
    signs = "SELECT id, 1 / floor(amount) AS f FROM orders WHERE id IN (1000, 1001) ORDER BY id"
    rows = sql(shop, signs, engine="spark")["rows"]
    assert [row["f"] for row in rows] == [
        {"$numberDouble": "-Infinity"},
        {"$numberDouble": "Infinity"},
    ]


def test_numbers_have_the_ranges_of_their_types(shop: DatasetClient) -> None:
    shop.insert("orders", {"id": -(2**63), "count": -(2**31), "amount": 1e308})
    statements = [
        "SELECT id, length(customer) * 2147483647 AS n FROM orders ORDER BY id",
        "SELECT id, row_number() OVER (ORDER BY id) * 2147483647 AS n FROM orders ORDER BY id",
        "SELECT count(*) AS n FROM orders WHERE (count // 1) * 3 > 5",
        "SELECT count // -1 AS n FROM orders",
        "SELECT id % -1 AS n FROM orders",
        "SELECT id, id % -2 AS n FROM orders ORDER BY id",
        "SELECT -2147483648 - 1 AS n",
        "SELECT var_samp(amount) AS n FROM orders",
        "SELECT stddev(amount) FILTER (WHERE amount > 1) AS n FROM orders",
        "SELECT stddev_pop(amount) OVER () AS n FROM orders",
        "SELECT id, stddev_pop(id) OVER (ORDER BY id) AS n FROM orders WHERE id > 0 ORDER BY id",
        "SELECT id % 9::decimal(38, 6) + 0.00000001 AS n FROM orders WHERE id > 0 ORDER BY id",
        "SELECT cast(id AS decimal(38, 6)) + 0.00000001 AS n FROM orders WHERE id > 0 ORDER BY id",
    ]
    assert compare(shop, statements) >= len(statements) - 1


def test_groups_of_no_rows_have_their_total(shop: DatasetClient) -> None:
    statement = "SELECT customer, count(*) AS n FROM orders {} GROUP BY ROLLUP (customer)"
    assert compare(shop, [statement.format("") + " ORDER BY ALL"]) == 1
    problem(send(shop, statement.format("WHERE false"), engine="spark"), 400, "invalid_sql")


def test_decimals_have_no_exponents(shop: DatasetClient) -> None:
    for engine in ("duckdb", "spark"):
        for text, number in (("1E+5", 100_000), ("1.5E+3", 1_500)):
            answer = sql(
                shop, "SELECT $1 = $2 AS e", {"$numberDecimal": text}, number, engine=engine
            )
            assert answer["rows"] == [{"e": True}]
        # What has more digits than a decimal is a double.
        answer = sql(shop, "SELECT $1 > 0 AS e", {"$numberDecimal": "1E-40"}, engine=engine)
        assert answer["rows"] == [{"e": True}]


def test_tables_with_ids_and_views_have_the_same_rows(server: str, polling: Polling) -> None:
    rng, web = random.Random(1), make_dataset(server, **WEB)
    for stage in range(4):
        send_web(web, [random_line(rng) for _ in range(8)])
        if stage == 2:
            pipeline_steps.drain(web)
        statements = [
            *(f"SELECT * FROM {name} ORDER BY ALL" for name in ("visits", "links", "page")),
            "SELECT page, count(*) AS n FROM visits__by_visitor GROUP BY page ORDER BY page",
            'SELECT count(*) AS n FROM links JOIN page ON "to" = key',
        ]
        assert compare(web, statements) == len(statements)


def test_results_have_every_format_and_their_limit(shop: DatasetClient) -> None:
    statement = 'SELECT id, customer, amount, paid, day, "at" FROM orders ORDER BY id'
    for form in ("json", "ndjson", "csv", "arrow", "parquet"):
        on_spark, on_duckdb = (
            send(shop, statement, format=form, limit=7, engine=engine)
            for engine in ("spark", "duckdb")
        )
        assert on_spark.status_code == 200
        assert on_spark.headers["Rillbase-Engine"] == "spark"
        assert on_spark.headers["Content-Type"] == on_duckdb.headers["Content-Type"]
        if form in ("ndjson", "csv"):
            assert on_spark.content == on_duckdb.content
        elif form == "json":
            assert on_spark.json()["truncated"] is True
            assert on_spark.json()["rows"] == on_duckdb.json()["rows"]
    assert (
        send(shop, statement, format="parquet", engine="spark").headers["Content-Type"] == PARQUET
    )


def test_parameters_are_values(shop: DatasetClient) -> None:
    hostile = "x' OR 1=1 -- ${env:PATH} `\\'"
    statement = "SELECT $1 AS a, ? || '!' AS b, $3 AS c, count(*) AS n FROM orders WHERE id > $4"
    statement = statement.replace("?", "$2")
    for engine in ("spark", "duckdb"):
        answer = sql(shop, statement, hostile, hostile, 2.5, 100, engine=engine)
        row = answer["rows"][0]
        assert (row["a"], row["b"], row["c"]) == (hostile, f"{hostile}!", 2.5)
    by_name = {"sql": "SELECT id FROM orders WHERE id > $Low ORDER BY id", "engine": "spark"}
    answer = shop.caller.post(f"{shop.path}/sql", {**by_name, "parameters": {"low": 300}})
    assert [row["id"] for row in answer.json()["rows"]] == [306, 313]


def test_the_number_of_rows_chooses_the_engine(shop: DatasetClient, polling: Polling) -> None:
    statement = "SELECT count(*) AS n FROM orders"
    assert sql(shop, statement)["engine"] == "duckdb"
    polling.change("RILLBASE_SQL_SPARK_ROWS", "0")
    assert sql(shop, statement)["engine"] == "spark"
    # Spark does not have this function.
    assert sql(shop, "SELECT median(amount) AS m FROM orders")["engine"] == "duckdb"
    error = problem(
        send(shop, "SELECT median(amount) FROM orders", engine="spark"), 400, "invalid_sql"
    )
    assert error["detail"] == "The function 'median' is not available on Spark."
    assert error["errors"][0]["pointer"] == "/sql"
    polling.change("RILLBASE_ANALYTICS_WORKERS", "threads")
    assert sql(shop, statement)["engine"] == "duckdb"
    error = problem(send(shop, statement, engine="spark"), 400, "invalid_body")
    assert error["errors"][0]["pointer"] == "/engine"
    error = problem(send(shop, statement, engine="hive"), 400, "invalid_body")
    assert error["errors"][0]["pointer"] == "/engine"


def test_a_statement_is_cancelled_at_its_timeout(shop: DatasetClient) -> None:
    count = "SELECT count(*) AS n FROM orders"
    assert sql(shop, count, engine="spark")["rows"] == [{"n": 60}]
    before = drivers()
    for _ in range(3):
        error = problem(send(shop, ENDLESS, engine="spark", timeout=2), 422, "query_too_expensive")
        assert error["detail"] == "The statement takes longer than its timeout."
    # Spark does not notice that it is interrupted, so another driver takes over.
    assert sql(shop, count, engine="spark")["rows"] == [{"n": 60}]
    assert drivers() != before
    wait_until(lambda: not results_of(shop), what="the results to be removed")


def results_of(shop: DatasetClient) -> list[Path]:
    folder = folder_of(shop.id)
    assert isinstance(folder, Path)
    return [*(folder / "results").glob("*")]


def test_a_killed_driver_is_replaced(shop: DatasetClient) -> None:
    count = "SELECT count(*) AS n FROM orders"
    assert sql(shop, count, engine="spark")["rows"] == [{"n": 60}]
    for process in drivers():
        process.kill()
    assert sql(shop, count, engine="spark")["rows"] == [{"n": 60}]
    wait_until(lambda: not results_of(shop), what="the results to be removed")


def drivers() -> list[psutil.Process]:
    return [one for one in psutil.Process().children(recursive=True) if is_driver(one)]


def is_driver(process: psutil.Process) -> bool:
    try:
        is_running = process.status() != psutil.STATUS_ZOMBIE
        return is_running and "analytics.sql.spark.driver" in process.cmdline()
    except psutil.NoSuchProcess:
        return False


def test_the_driver_has_no_secrets(shop: DatasetClient) -> None:
    sql(shop, "SELECT 1 AS a", engine="spark")
    processes = [one for driver in drivers() for one in (driver, *driver.children(recursive=True))]
    assert any("java" in one.name() for one in processes)
    for one in processes:
        try:
            names = {*one.environ()}
        except (psutil.NoSuchProcess, ProcessLookupError):
            continue
        assert not {name for name in names if name.startswith(("RILLBASE_", "DATABASE", "AWS_"))}
        assert not {name for name in names if "URL" in name or "SECRET" in name}
