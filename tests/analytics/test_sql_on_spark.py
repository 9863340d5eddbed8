"""SQL on Spark: the answers of DuckDB, or a reason why not; nothing but what is translated."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from analytics.locations import folder_of
from analytics.pipeline.scans import ScanRunner
from tests.analytics import pipeline_steps
from tests.analytics.pipeline_steps import Inline
from tests.analytics.sql_corpus import CORPUS
from tests.analytics.test_scans import nobody_leading
from tests.analytics.test_sql import send, sql
from tests.analytics.test_sql_equality import corpus_rows, same
from tests.caller import problem
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.analytics.dataset_client import DatasetClient, Json


@pytest.fixture(scope="module")
def spark_runner() -> Iterator[ScanRunner]:
    """A pipeline that only answers requests, with one driver for all tests."""
    runner, stopping = ScanRunner(Inline(), lambda: None), threading.Event()

    def poll() -> None:
        while not stopping.wait(0.02):
            runner.poll()

    thread = threading.Thread(target=poll)
    with nobody_leading():
        thread.start()
        try:
            yield runner
        finally:
            stopping.set()
            thread.join()
            runner.close()


@pytest.fixture
def spark(
    shop: DatasetClient, spark_runner: ScanRunner, settings_environment: pytest.MonkeyPatch
) -> DatasetClient:
    """A dataset with rows at every stage, some of which replace others."""
    settings_environment.setenv("RILLBASE_ANALYTICS_WORKERS", "spark")
    orders, stock = corpus_rows(random.Random(5))
    half = len(orders) // 2
    shop.insert("stock", *stock)
    replaced = ({"id": row["id"], "customer": "x"} for row in orders[-5:])
    shop.insert("orders", *orders[:half], *replaced)
    pipeline_steps.drain(shop)
    shop.insert("orders", *orders[half:])
    return shop


def on_both(shop: DatasetClient, statement: str, *parameters: object) -> tuple[Any, Any]:
    """Return the answers of both engines."""
    spark, duckdb = (
        send(shop, statement, *parameters, engine=engine) for engine in ("spark", "duckdb")
    )
    return spark, duckdb


def test_statements_have_the_same_answers_on_both_engines(spark: DatasetClient) -> None:
    answered, wrong = 0, []
    for statement in CORPUS:
        on_spark, on_duckdb = on_both(spark, statement)
        if on_spark.status_code == 400 and "on Spark" in on_spark.json()["detail"]:
            continue
        answered += 1
        first, second = ({**answer.json(), "engine": None} for answer in (on_spark, on_duckdb))
        if on_spark.status_code != on_duckdb.status_code or not same(first, second):
            wrong.append((statement, first, second))
    open("/tmp/wrong.txt","w").write("\n".join(map(repr, wrong)))
    assert wrong == [], "\n".join(map(repr, wrong))
    assert answered >= 145


def test_debug(spark: DatasetClient) -> None:
    a = send(spark, "SELECT count(*) FROM orders", engine="spark")
    assert a.status_code == 200, a.text
    print(a.text)
