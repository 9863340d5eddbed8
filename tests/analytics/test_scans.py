"""Large queries run in pieces on the pipeline's workers, with the same results as other queries."""

from __future__ import annotations

import json
import random
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from analytics import requests
from analytics.locations import root
from analytics.pipeline import idle_pipeline
from analytics.pipeline.coordinator import Coordinator
from analytics.pipeline.decisions import PipelineStep
from analytics.pipeline.scans import ScanRunner
from analytics.pipeline.workers import ThreadWorkers
from analytics.rows.file_store import files_in
from foundation.lead import Lead
from tests.analytics import pipeline_steps
from tests.analytics.dataset_client import make_dataset
from tests.analytics.pipeline_steps import Inline
from tests.analytics.test_id_keys import WEB, random_line, send
from tests.caller import problem
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.analytics.dataset_client import DatasetClient, Json

QUERIES: tuple[Json, ...] = (
    {"table": "orders"},
    {"table": "orders", "columns": ["count", "customer"], "order": [["count", -1]], "limit": 7},
    {"table": "orders", "filter": {"count": {"$gte": 2}, "id": {"$gte": 30, "$lt": 150}}},
    {"table": "orders", "filter": {"id": -1}},
    {"table": "orders", "group_by": []},
    {
        "table": "orders",
        "group_by": ["customer"],
        "aggregates": {
            "orders": {"op": "count"},
            "paid": {"op": "count", "column": "count"},
            "sum": {"op": "sum", "column": "count"},
            "least": {"op": "min", "column": "amount"},
            "most": {"op": "max", "column": "day"},
            "mean": {"op": "avg", "column": "count"},
            "mean_amount": {"op": "avg", "column": "amount"},
            "different": {"op": "distinct", "column": "count"},
            "customers": {"op": "distinct", "column": "customer"},
        },
        "order": [["sum", -1]],
    },
    {
        "table": "orders",
        "group_by": ["count", "day"],
        "aggregates": {"different": {"op": "distinct", "column": "customer"}},
        "having": {"different": {"$gte": 2}},
        "limit": 3,
    },
    {"table": "orders", "group_by": [], "aggregates": {"m": {"op": "avg", "column": "count"}},
     "filter": {"id": -1}},
    {"table": "stock", "filter": {"place": {"$in": ["a", "b"]}}, "columns": ["item", "pieces"]},
)  # fmt: skip
ID_QUERIES: tuple[Json, ...] = (
    {"table": "visits"},
    {"table": "visits", "filter": {"page": "https://example.org/3"}},
    {"table": "links", "group_by": ["to"], "having": {"to": {"$ne": "https://example.org/1"}}},
    {"table": "visits", "order": [["page", 1]], "limit": 5},
    {"table": "page", "order": [["id", 1]]},
)


@pytest.fixture
def in_pieces(settings_environment: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Make the authority's files small, and treat every query as large."""
    from analytics.pipeline import tasks

    settings_environment.setattr(tasks, "FILE_BYTES", 1)
    settings_environment.setattr("analytics.pipeline.blocks.BLOCK_BYTES", 1)
    settings_environment.setattr("analytics.rows.sorted_file.MIN_GROUP_ROWS", 16)
    settings_environment.setattr("analytics.rows.sorted_file.MAX_GROUP_ROWS", 16)
    settings_environment.setenv("RILLBASE_ANALYTICS_SCAN_ROWS", "0")
    return settings_environment


@contextmanager
def running() -> Iterator[None]:
    coordinator = Coordinator(ThreadWorkers(), lambda: None)
    coordinator._thread.start()
    try:
        yield
    finally:
        coordinator.end()


@contextmanager
def nobody_leading() -> Iterator[None]:
    """Prevent the pipelines of other tests from answering."""
    lead = Lead("pipeline")
    wait_until(lead.take, what="nobody to lead", timeout_s=300)
    try:
        yield
    finally:
        lead.end()


def questions(shop: DatasetClient) -> set[str]:
    """Return the remaining questions and answers."""
    return {path.name for path, _ in files_in(requests.folder_for(root(), shop.id))}


def both(shop: DatasetClient, change: pytest.MonkeyPatch, query_body: Json) -> tuple[Json, Json]:
    """Return the results of a query run in pieces and run as a whole."""
    answers = []
    for most in ("0", "1000000"):
        change.setenv("RILLBASE_ANALYTICS_SCAN_ROWS", most)
        answer = shop.query(**query_body)
        answers.append({"rows": answer["rows"], "state": answer["state"]})
    return answers[0], answers[1]


def fill(shop: DatasetClient, rng: random.Random) -> None:
    """Create rows in every stage."""
    for number in range(4):
        rows = [
            {
                "id": n,
                "customer": rng.choice(["ada", "bob", "é"]),
                "amount": rng.randrange(100) / 4,
                "count": rng.choice([None, 1, 2, 3]),
                "day": f"2026-11-{1 + n % 5:02}",
            }
            for n in rng.sample(range(200), 120)
        ]
        for row in rows:
            if row["count"] is None:
                del row["count"]
        stock = [{"place": rng.choice("abc"), "item": n % 9, "pieces": n} for n in range(40)]
        shop.upload(*({"orders": row} for row in rows), *({"stock": row} for row in stock))
        if number == 1:
            pipeline_steps.drain(shop)
    gone = [{"orders": {"id": n}, "op": "delete"} for n in range(0, 200, 9)]
    shop.upload(*gone)
    pipeline_steps.do(shop, PipelineStep.SORT)
    shop.upload(*({"orders": {"id": n, "count": 9}, "op": "update"} for n in range(0, 200, 7)))


def test_answers_are_the_same_in_pieces_and_at_once(
    shop: DatasetClient, in_pieces: pytest.MonkeyPatch
) -> None:
    from analytics.models import FileStage, StoredFile

    fill(shop, random.Random(1))
    files = StoredFile.unscoped.using("relay").filter(
        dataset_id=shop.id, stage=FileStage.AUTHORITY, until=None, table="orders", view=""
    )
    assert files.count() > 3, "several pieces"
    in_pieces.setenv("RILLBASE_ANALYTICS_AUTHORITY_AGE_S", "1000")
    with running():
        for query_body in QUERIES:
            actual, expected = both(shop, in_pieces, query_body)
            assert actual == expected, query_body
        response = shop.query("orders", state=1)
        assert response["state"] == 1
        answer = shop.caller.post(
            f"{shop.path}/query",
            {
                "table": "stock",
                "group_by": [],
                "aggregates": {"sum": {"op": "sum", "column": "item"}},
            },
        )
        assert answer.status_code == 200, answer.text
    assert questions(shop) == set(), "nothing is left of questions and answers"


def test_keys_that_are_stored_as_ids_are_answered_in_pieces(
    server: str, in_pieces: pytest.MonkeyPatch
) -> None:
    web, rng = make_dataset(server, **WEB), random.Random(2)
    for number in range(6):
        send(web, [random_line(rng) for _ in range(60)])
        if number == 2:
            pipeline_steps.drain(web)
    in_pieces.setenv("RILLBASE_ANALYTICS_BATCH_AGE_S", "1000")
    with running():
        for query_body in ID_QUERIES:
            actual, expected = both(web, in_pieces, query_body)
            assert actual == expected, query_body


def test_a_sum_that_does_not_fit_is_refused_in_pieces_too(
    shop: DatasetClient, in_pieces: pytest.MonkeyPatch
) -> None:
    large = 2**62
    rows = [{"place": "a", "item": n, "pieces": large} for n in range(3)]
    shop.insert("stock", *rows)
    with running():
        query_body = {
            "table": "stock",
            "group_by": [],
            "aggregates": {"sum": {"op": "sum", "column": "pieces"}},
        }
        problem(shop.caller.post(f"{shop.path}/query", query_body), 400, "sum_overflow")


def test_the_wait_for_a_missing_pipeline_is_limited(
    shop: DatasetClient, in_pieces: pytest.MonkeyPatch
) -> None:
    in_pieces.setattr("analytics.query.remote_scan.DEADLINE_S", 0.2)
    shop.insert("orders", {"id": 1})
    with nobody_leading():
        answer = shop.caller.post(f"{shop.path}/query", {"table": "orders"})
    problem(answer, 503, "unavailable")
    assert questions(shop) == set(), "it is cancelled"


def test_the_request_of_a_disconnected_caller_is_withdrawn(
    shop: DatasetClient, in_pieces: pytest.MonkeyPatch
) -> None:
    shop.insert("orders", {"id": 1})
    address = urlsplit(shop.caller.base)
    body = json.dumps({"table": "orders"})
    head = f"POST {shop.path}/query HTTP/1.1\r\nHost: {address.netloc}\r\n"
    for name, value in {**shop.caller.headers, "Content-Length": str(len(body))}.items():
        head += f"{name}: {value}\r\n"
    place = (address.hostname or "", address.port or 0)
    with nobody_leading():
        with socket.create_connection(place) as connection:
            connection.sendall(f"{head}\r\n{body}".encode())
            wait_until(
                lambda: any(name.endswith(".request") for name in questions(shop)),
                what="the question",
            )
        wait_until(lambda: questions(shop) == set(), what="the question to be taken back")


class Slow(pipeline_steps.Inline):
    """Workers that run until they are cancelled."""

    def __init__(self) -> None:
        self.begun, self.cancelled = threading.Event(), threading.Event()

    def run(self, pool: str, tasks: Sequence[str], group: str = "") -> list[str]:
        self.begun.set()
        assert self.cancelled.wait(60)
        raise OSError("cancelled")

    def cancel(self, group: str) -> None:
        self.cancelled.set()


def test_a_request_starts_an_idle_pipeline(
    tmp_path: Path, settings_environment: pytest.MonkeyPatch
) -> None:
    settings_environment.setenv("RILLBASE_ANALYTICS_DIR", str(tmp_path))
    assert not idle_pipeline._has_files()
    request = requests.submit(requests.folder_for(root(), uuid4()), "one", ["{}"])
    assert idle_pipeline._has_files()
    request.delete()
    assert not idle_pipeline._has_files()


def test_a_withdrawn_request_is_cancelled(shop: DatasetClient) -> None:
    workers = Slow()
    scans = ScanRunner(workers, lambda: None)
    request = requests.submit(
        requests.folder_for(root(), shop.id), "one", [json.dumps({"kind": "scan"})]
    )
    try:
        scans.poll()
        assert workers.begun.wait(60)
        request.delete()
        scans.poll()
        assert workers.cancelled.is_set()

        def has_ended() -> bool:
            scans.poll()
            return not scans.busy

        wait_until(has_ended, what="the question to be forgotten")
        assert requests.answered(request) is None
    finally:
        workers.cancelled.set()
        scans.close()


class EndlessDriver:
    """A driver whose statements end when the test lets them."""

    def __init__(self) -> None:
        self.proceed = threading.Event()

    def run(self, name: str, statement: Json, timeout_s: float) -> Json:
        if statement["sql"] == "endless":
            self.proceed.wait()
        return {"files": []}

    def cancel(self, name: str) -> None:
        """Ignored, as by Spark between rows."""

    def stop_if_idle(self) -> None:
        """It is never idle."""

    def close(self) -> None:
        self.proceed.set()


def test_a_tenants_statements_leave_spark_to_others(
    shop: DatasetClient, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver, neighbour = EndlessDriver(), make_dataset(server)
    monkeypatch.setattr("analytics.pipeline.scans.DriverProcess", lambda: driver)
    scans = ScanRunner(Inline(), lambda: None)
    with nobody_leading():
        try:
            endless = [submit_statement(shop, f"a{n}", "endless") for n in range(6)]
            short = submit_statement(neighbour, "b", "short")

            def is_answered(request: requests.DatasetRequest) -> bool:
                scans.poll()
                return requests.answered(request) is not None

            wait_until(lambda: is_answered(short), what="the neighbour's answer")
            endless[-1].delete()
            driver.proceed.set()
            for request in endless[:-1]:
                wait_until(lambda r=request: is_answered(r), what="an answer")  # type: ignore[misc]
            wait_until(lambda: is_idle(scans), what="all places to be free")
        finally:
            scans.close()


def is_idle(scans: ScanRunner) -> bool:
    scans.poll()
    return not scans.busy


def submit_statement(shop: DatasetClient, name: str, sql: str) -> requests.DatasetRequest:
    task = {"kind": "statement", "sql": sql, "timeout_s": 60.0}
    return requests.submit(requests.folder_for(root(), shop.id), name, [json.dumps(task)])
