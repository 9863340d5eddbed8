"""The pipeline as a separate process on a real Spark, killed repeatedly."""

from __future__ import annotations

import random
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.analytics.dataset_client import make_dataset
from tests.analytics.processes import START_TIMEOUT_S, drivers_of, kill, pipeline, workers_of
from tests.analytics.test_id_keys import WEB, Model, by_key, random_line, send
from tests.analytics.zero_sums import Readers, write
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.analytics.dataset_client import DatasetClient

pytestmark = pytest.mark.timeout(900)


def reached(shop: DatasetClient) -> int:
    state: int = shop.query("stock", freshness="any")["state"]
    return state


def has_all(shop: DatasetClient, uploads: int) -> None:
    """Assert that the authority holds the result of all uploads, without lost or duplicated
    rows.
    """
    wait_until(
        lambda: reached(shop) == uploads,
        what="the authority to have every upload",
        timeout_s=START_TIMEOUT_S,
    )
    assert shop.rows("stock", freshness="any", columns=["item", "pieces"]) == [
        {"item": 1, "pieces": uploads},
        {"item": 2, "pieces": -uploads},
    ]


@pytest.mark.long
def test_stages_on_spark_survive_its_workers_and_its_driver(
    shop: DatasetClient, tmp_path: Path, settings_environment: pytest.MonkeyPatch
) -> None:
    log, rng = tmp_path / "pipeline.log", random.Random(2)
    with ExitStack() as reading:
        reading.enter_context(Readers(shop, 1))
        with pipeline("spark", log) as process:
            write(shop, range(1, 11), rng)
            has_all(shop, 10)
            workers = workers_of(process)
            assert workers
            # The task of a killed worker fails and is repeated.
            kill(workers)
            write(shop, range(11, 21), rng)
            has_all(shop, 20)
            # Without its JVM the process cannot continue, and ends.
            kill(drivers_of(process))
            write(shop, range(21, 26), rng)
            process.wait(START_TIMEOUT_S)
        with pipeline("spark", log):
            write(shop, range(26, 31), rng)
            has_all(shop, 30)
            reading.close()
            # Even small queries run on Spark.
            settings_environment.setenv("RILLBASE_ANALYTICS_SCAN_ROWS", "0")
            query_body = {"aggregates": {"sum": {"op": "sum", "column": "pieces"}}}
            assert shop.rows("stock", group_by=["place"], **query_body) == [
                {"place": "p", "sum": 0}
            ]


@pytest.mark.long
def test_a_pipeline_that_is_killed_again_and_again_loses_and_doubles_nothing(
    shop: DatasetClient, tmp_path: Path
) -> None:
    rng, uploads = random.Random(3), 600
    writer = threading.Thread(target=write, args=(shop, range(1, uploads + 1), rng))
    with Readers(shop, 2):
        writer.start()
        while writer.is_alive():
            with pipeline("threads", tmp_path / "pipeline.log"):
                writer.join(timeout=rng.uniform(3.0, 10.0))
        with pipeline("threads", tmp_path / "pipeline.log"):
            has_all(shop, uploads)


@pytest.mark.long
def test_a_pipeline_that_is_killed_repeatedly_assigns_each_id_once(
    server: str, tmp_path: Path
) -> None:
    web, model, rng = make_dataset(server, **WEB), Model(), random.Random(4)
    uploads = 300

    def upload_all() -> None:
        for _ in range(uploads):
            lines = [random_line(rng) for _ in range(3)]
            model.do(lines)
            send(web, lines)

    writer = threading.Thread(target=upload_all)
    writer.start()
    times = random.Random(5)
    while writer.is_alive():
        with pipeline("threads", tmp_path / "pipeline.log"):
            writer.join(timeout=times.uniform(3.0, 10.0))
    with pipeline("threads", tmp_path / "pipeline.log"):
        wait_until(
            lambda: web.query("links", freshness="any")["state"] == uploads,
            what="the authority to have every upload",
            timeout_s=START_TIMEOUT_S,
        )
    for name, keys in model.keys.items():
        rows = web.rows(name, order=[["id", 1]], freshness="any")
        assert rows == [{"key": key, "id": id_} for id_, key in enumerate(keys)]
    for table in WEB["tables"]:
        rows = web.rows(table, freshness="any")
        assert by_key(table, rows) == model.rows.rows(table)
