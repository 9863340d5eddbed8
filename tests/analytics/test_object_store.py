"""Analytics tables whose files are objects of an S3-compatible store."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from analytics import requests
from analytics.definitions.removal import remove_files
from analytics.locations import folder_of, namespace_of, root
from analytics.pipeline.catalogue import _catalogue, open_catalogue
from analytics.pipeline.collector import collect
from analytics.pipeline.coordinator import Coordinator
from analytics.pipeline.decisions import PipelineStep
from analytics.pipeline.workers import ThreadWorkers
from analytics.rows.file_store import files_in
from analytics.rows.objects import objects
from foundation.errors import Unavailable
from tests.analytics import pipeline_steps
from tests.analytics.dataset_client import ARROW, as_arrow, make_dataset
from tests.analytics.test_id_keys import WEB, Model, check, random_line, send
from tests.analytics.test_sql import rows
from tests.caller import problem
from tests.object_store import Store, object_store

if TYPE_CHECKING:
    from tests.analytics.dataset_client import DatasetClient

PREFIX = "/rows/installation/"


def forget() -> None:
    """Close everything that was opened for another store."""
    open_catalogue().close()
    _catalogue.cache_clear()
    objects.cache_clear()


@pytest.fixture
def store(settings_environment: pytest.MonkeyPatch) -> Iterator[Store]:
    """Keep files in a store for one test."""
    with object_store() as running:
        for name, value in {
            "AWS_ENDPOINT_URL": running.url,
            "AWS_ACCESS_KEY_ID": "somebody",
            "AWS_SECRET_ACCESS_KEY": "anything",
            "AWS_REGION": "here-1",
            "RILLBASE_ANALYTICS_DIR": "s3://rows/installation",
        }.items():
            settings_environment.setenv(name, value)
        forget()
        yield running
        forget()


@pytest.fixture
def web(server: str, store: Store) -> DatasetClient:
    return make_dataset(server, **WEB)


@contextmanager
def running() -> Iterator[None]:
    coordinator = Coordinator(ThreadWorkers(), lambda: None)
    coordinator._thread.start()
    try:
        yield
    finally:
        coordinator.end()


def test_every_stage_reads_and_writes_objects(web: DatasetClient, store: Store) -> None:
    rng, states = random.Random(1), [Model()]
    for step in (PipelineStep.REMAP, PipelineStep.SORT, PipelineStep.AUTHORITY, None):
        model = states[-1].copy()
        lines = [random_line(rng) for _ in range(6)]
        model.do(lines)
        send(web, lines)
        states.append(model)
        if step is not None:
            pipeline_steps.do(web, step)
        check(web, states, rng, freshness=0)
    pipeline_steps.drain(web)
    check(web, states, rng, freshness="any")
    check(web, states, rng, state=2)
    table = open_catalogue().load_table((namespace_of(web.id), "page"))
    result = table.scan(selected_fields=("key", "id")).to_arrow().sort_by("id")
    assert result["key"].to_pylist() == states[-1].keys["page"]
    assert table.location().startswith("s3://rows/installation/")


def test_what_no_state_needs_is_removed_and_all_of_it_with_the_dataset(
    web: DatasetClient, store: Store
) -> None:
    from analytics.models import Dataset, StoredFile

    for number in range(3):
        send(web, [("links", "insert", {"from": "/a", "to": f"/{number}"})])
        pipeline_steps.drain(web)
    Dataset.unscoped.using("relay").filter(pk=web.id).update(retention_s=0)
    assert collect(pipeline_steps.authority_of(web), web.id) > 0
    kept = StoredFile.unscoped.using("relay").filter(dataset_id=web.id)
    expected = {f"{PREFIX}{web.id}/{path}" for path in kept.values_list("path", flat=True)}
    result = set(store.keys(f"{PREFIX}{web.id}/"))
    assert {key for key in result if "/iceberg/" not in key} == expected
    assert len(web.rows("links")) == 3
    remove_files(web.id)
    assert store.keys(f"{PREFIX}{web.id}/") == []


def test_large_queries_are_exchanged_through_the_store(
    web: DatasetClient, settings_environment: pytest.MonkeyPatch
) -> None:
    settings_environment.setenv("RILLBASE_ANALYTICS_SCAN_ROWS", "0")
    for number in range(3):
        send(web, [("links", "insert", {"from": "/a", "to": f"/{number}"})])
    pipeline_steps.drain(web)
    with running():
        count = {"group_by": ["from"], "aggregates": {"n": {"op": "count"}}}
        assert web.rows("links", **count) == [{"from": "/a", "n": 3}]
    assert list(files_in(requests.folder_for(root(), web.id))) == []


def test_sql_reads_copies_of_objects(
    web: DatasetClient, settings_environment: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings_environment.setattr(tempfile, "tempdir", str(tmp_path))
    statement = 'SELECT "from", count(*) AS n FROM links GROUP BY ALL'
    for number in range(1, 4):
        send(web, [("links", "insert", {"from": "/a", "to": f"/{number}"})])
        assert rows(web, statement) == [{"from": "/a", "n": number}]
        pipeline_steps.drain(web)
        assert rows(web, statement, freshness="any") == [{"from": "/a", "n": number}]
    copies = tmp_path / "rillbase-analytics" / "copies" / str(web.id)
    assert len(list(copies.iterdir())) > 3
    settings_environment.setenv("RILLBASE_SQL_COPIES_MIB", "64")
    (copies / "of-an-earlier-statement").write_bytes(bytes(2**26))
    os.utime(copies / "of-an-earlier-statement", (0, 0))
    send(web, [("links", "insert", {"from": "/a", "to": "/4"})])
    assert rows(web, statement) == [{"from": "/a", "n": 4}]
    assert not (copies / "of-an-earlier-statement").exists()


def test_a_store_that_does_not_answer_loses_nothing(web: DatasetClient, store: Store) -> None:
    rows = as_arrow(pa.table({"from": ["/a"], "to": ["/b"], "weight": [1]}))
    assert web.send("uploads", rows, ARROW, table="links").status_code == 201
    store.is_away = True
    problem(web.send("uploads", rows, ARROW, table="links"), 503, "unavailable")
    problem(web.caller.post(f"{web.path}/query", {"table": "links"}), 503, "unavailable")
    with pytest.raises(Unavailable):
        pipeline_steps.do(web, PipelineStep.REMAP)
    store.is_away = False
    pipeline_steps.drain(web)
    assert web.query("links", freshness="any")["state"] == 1
    assert len(web.rows("links")) == 1
    assert {path.name for path, _ in files_in(folder_of(web.id))}
