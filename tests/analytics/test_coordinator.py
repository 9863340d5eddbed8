"""The coordinator under faults: it continues, and keeps its guarantees."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from analytics.definitions.removal import remove_files
from analytics.locations import namespace_of
from analytics.models import Dataset, Run
from analytics.pipeline import coordinator as coordinators
from analytics.pipeline import idle_pipeline, ledger
from analytics.pipeline.catalogue import open_catalogue
from analytics.pipeline.collector import collect, sweep
from analytics.pipeline.coordinator import STEPS_AT_ONCE, Coordinator
from analytics.pipeline.decisions import PipelineStep
from analytics.pipeline.housekeeping import Housekeeping
from analytics.pipeline.ledger import StepSuperseded
from analytics.pipeline.steps import run_step
from tests.analytics import pipeline_steps
from tests.analytics.dataset_client import files_of, make_dataset
from tests.analytics.test_iceberg import by_pyiceberg, table_of
from tests.waiting import TIMEOUT_S, wait_until

if TYPE_CHECKING:
    from analytics.pipeline.workers import Workers
    from tests.analytics.dataset_client import DatasetClient


@pytest.fixture(autouse=True)
def everything_is_due(settings_environment: pytest.MonkeyPatch) -> None:
    settings_environment.setenv("RILLBASE_ANALYTICS_BATCH_AGE_S", "0")
    settings_environment.setenv("RILLBASE_ANALYTICS_AUTHORITY_AGE_S", "0")
    settings_environment.setattr(coordinators, "PAUSE_S", 0.2)


@contextmanager
def running_coordinator(workers: Workers | None = None) -> Iterator[None]:
    coordinator = Coordinator(workers or pipeline_steps.Inline(), lambda: None)
    coordinator._thread.start()
    try:
        yield
    finally:
        coordinator.end()


@contextmanager
def moved_away(path: Path) -> Iterator[None]:
    """Move a file away during the block."""
    aside = path.with_name(f"{path.name}.aside")
    path.rename(aside)
    try:
        yield
    finally:
        aside.rename(path)


def metadata_of(shop: DatasetClient, table: str) -> Path:
    return Path(table_of(shop, table).metadata_location.removeprefix("file://"))


def untag(shop: DatasetClient, table: str, state: int) -> None:
    """Simulate a process that died after writing a state's row and before writing its tags."""
    table_of(shop, table).manage_snapshots().remove_tag(f"state-{state}").commit()
    Run.unscoped.using("relay").filter(dataset_id=shop.id).update(tagged=False)


def error_of(shop: DatasetClient) -> str:
    return Dataset.unscoped.using("relay").get(pk=shop.id).pipeline_error


def in_authority(shop: DatasetClient) -> int:
    return Dataset.unscoped.using("relay").get(pk=shop.id).authority_state


def keep_no_states(shop: DatasetClient) -> None:
    Dataset.unscoped.using("relay").filter(pk=shop.id).update(retention_s=0)


def test_a_state_gets_its_tags_although_nothing_is_uploaded_any_more(shop: DatasetClient) -> None:
    shop.insert("orders", {"id": 1})
    pipeline_steps.drain(shop)
    untag(shop, "orders", 1)
    with running_coordinator():
        wait_until(lambda: "state-1" in table_of(shop, "orders").refs(), what="the tag")


def test_a_catalogue_that_cannot_be_read_stops_its_dataset_and_no_other(
    shop: DatasetClient,
) -> None:
    shop.insert("orders", {"id": 1})
    pipeline_steps.drain(shop)
    untag(shop, "orders", 1)
    other = make_dataset(shop.caller.base, account=shop.account, name="other")
    with moved_away(metadata_of(shop, "orders")):
        shop.insert("orders", {"id": 2})
        with running_coordinator():
            wait_until(lambda: error_of(shop).startswith("tag: "), what="the error to be shown")
            other.insert("orders", {"id": 1})
            wait_until(lambda: in_authority(other) == 1, what="the other dataset to continue")
    with running_coordinator():
        wait_until(lambda: in_authority(shop) == 2, what="the dataset to continue")
    assert {"state-1", "state-2"} <= set(table_of(shop, "orders").refs())
    assert error_of(shop) == ""


@pytest.mark.parametrize("place", ["log", "location", "parent", "snapshot"])
def test_metadata_that_names_files_of_others_stops_its_dataset_and_touches_none(
    shop: DatasetClient, place: str
) -> None:
    shop.insert("orders", {"id": 1})
    pipeline_steps.drain(shop)
    other = make_dataset(shop.caller.base, account=shop.account, name="other")
    other.insert("orders", {"id": 1})
    pipeline_steps.drain(other)
    theirs = sorted(files_of(other.id).rglob("*.metadata.json"))
    path = metadata_of(shop, "orders")
    written = path.read_text()
    path.write_text(json.dumps(foreign(json.loads(written), metadata_of(other, "orders"), place)))
    shop.insert("orders", {"id": 2})
    with running_coordinator():
        wait_until(lambda: "outside its folder" in error_of(shop), what="the error to be shown")
        path.write_text(written)
        wait_until(lambda: in_authority(shop) == 2, what="the dataset to continue")
    assert sorted(files_of(other.id).rglob("*.metadata.json")) == theirs
    assert len(other.rows("orders", freshness="any")) == 1


def foreign(metadata: dict[str, Any], file: Path, place: str) -> dict[str, Any]:
    """Return metadata that names another dataset's file, which a commit would remove or replace."""
    inside = metadata["location"]
    match place:
        case "log":
            entry = {"metadata-file": file.as_uri(), "timestamp-ms": 1}
            return {**metadata, "metadata-log": [entry] * 5}
        case "location":
            return {**metadata, "location": file.parent.parent.as_uri()}
        case "parent":
            return {**metadata, "location": f"{inside}/../../../{file.parent.parent.parent.name}"}
        case _:
            (snapshot,) = metadata["snapshots"]
            return {
                **metadata,
                "snapshots": [{**snapshot, "manifest-list": "s3://others/list.avro"}],
            }


class DelayedWorkers(pipeline_steps.Inline):
    """Workers that are slow once, so that another process takes over."""

    def __init__(self, shop: DatasetClient) -> None:
        self._shop = shop
        self._is_slow = True

    def run(self, pool: str, tasks: Sequence[str], group: str = "") -> list[str]:
        results = super().run(pool, tasks)
        if self._is_slow:
            self._is_slow = False
            ledger.take_over()
            pipeline_steps.drain(self._shop)
        return results


def test_a_replaced_process_cannot_roll_back_a_committed_snapshot(shop: DatasetClient) -> None:
    for number in range(2):
        shop.insert("orders", {"id": number, "customer": "ab"[number]})
        pipeline_steps.do(shop, PipelineStep.SORT)
        standing, planned = (
            pipeline_steps.standing_of(shop),
            pipeline_steps.due(shop, PipelineStep.AUTHORITY),
        )
        assert planned is not None
        with pytest.raises(StepSuperseded):
            run_step(DelayedWorkers(shop), pipeline_steps.authority_of(shop), standing, planned)
        committed = pipeline_steps.standing_of(shop).authority
        assert committed is not None
        assert committed.last == number + 1
        for table, snapshot in committed.snapshots.items():
            result = table_of(shop, table).current_snapshot()
            assert result is not None
            assert result.snapshot_id == snapshot
    expected = shop.rows("orders", columns=["id", "customer", "count"])
    assert by_pyiceberg(table_of(shop, "orders"), "main") == expected


def test_a_failed_cleanup_does_not_block_others(shop: DatasetClient) -> None:
    other = make_dataset(shop.caller.base, account=shop.account, name="other")
    for dataset in (shop, other):
        for number in range(2):
            dataset.insert("orders", {"id": number})
            pipeline_steps.drain(dataset)
        keep_no_states(dataset)

    def states(dataset: DatasetClient) -> set[str]:
        return set(table_of(dataset, "orders").refs()) - {"main"}

    def clean_up(dataset: DatasetClient) -> None:
        house = Housekeeping()
        try:
            house.poll()
            wait_until(lambda: states(dataset) == {"state-2"}, what="the first state to be removed")
        finally:
            house.close()

    with moved_away(metadata_of(shop, "orders")):
        clean_up(other)
    clean_up(shop)


def test_metadata_of_removed_states_is_deleted_once_it_is_old(shop: DatasetClient) -> None:
    for number in range(4):
        shop.insert("orders", {"id": number, "customer": "ab"[number % 2]})
        pipeline_steps.drain(shop)
    keep_no_states(shop)
    authority = pipeline_steps.authority_of(shop)
    collect(authority, shop.id)

    def iceberg_files() -> set[Path]:
        return {path for path in (files_of(shop.id) / "iceberg").rglob("*") if path.is_file()}

    before = iceberg_files()
    assert sweep(authority, shop.id) == 0, "a commit in progress may refer to it"
    for path in before:
        os.utime(path, (0, 0))
    assert sweep(authority, shop.id) > 0
    left = iceberg_files()
    assert left < before
    # Each table keeps one manifest list, that of the last state.
    assert sum(path.name.startswith("snap-") for path in left) == 2
    expected = shop.rows("orders", columns=["id", "customer", "count"])
    for table in ("orders", "orders__by_customer"):
        assert by_pyiceberg(table_of(shop, table), "state-4") == expected
    shop.insert("orders", {"id": 9})
    pipeline_steps.drain(shop)
    assert len(by_pyiceberg(table_of(shop, "orders"), "state-5")) == 5


class Late(pipeline_steps.Inline):
    """Workers that still write after their dataset has been removed."""

    def __init__(self, shop: DatasetClient) -> None:
        self._shop = shop
        self.wrote = threading.Event()

    def run(self, pool: str, tasks: Sequence[str], group: str = "") -> list[str]:
        results = super().run(pool, tasks)
        if not self.wrote.is_set():
            assert self._shop.caller.delete(self._shop.control_path).status_code == 204
            remove_files(self._shop.id)
            late = files_of(self._shop.id) / "sorted" / "late.parquet"
            late.parent.mkdir(parents=True)
            late.write_bytes(b"unused")
            self.wrote.set()
        return results


def test_what_is_written_for_a_dataset_that_was_dropped_meanwhile_is_removed(
    shop: DatasetClient,
) -> None:
    folder, late = files_of(shop.id), Late(shop)
    shop.insert("orders", {"id": 1})
    with running_coordinator(late):
        wait_until(late.wrote.is_set, what="the dataset to be dropped while it is sorted")
        wait_until(lambda: not folder.exists(), what="the late file to be removed")
    assert not open_catalogue().namespace_exists(namespace_of(shop.id))


class Slow(pipeline_steps.Inline):
    """Workers whose authority steps wait until the test lets them finish."""

    def __init__(self) -> None:
        self.may_finish = threading.Event()

    def run(self, pool: str, tasks: Sequence[str], group: str = "") -> list[str]:
        if pool == PipelineStep.AUTHORITY:
            self.may_finish.wait()
        return super().run(pool, tasks)


def test_long_steps_of_a_stage_do_not_block_other_stages(shop: DatasetClient) -> None:
    slow, base = Slow(), shop.caller.base
    others = [
        make_dataset(base, account=shop.account, name=f"slow-{n}") for n in range(2 * STEPS_AT_ONCE)
    ]
    for account in others:
        account.insert("orders", {"id": 1})
    with running_coordinator(slow):
        try:
            for account in (*others, shop):
                account.insert("orders", {"id": 2})
                wait_until(partial(is_sorted, account), what="the upload to be sorted")
        finally:
            slow.may_finish.set()


def is_sorted(dataset: DatasetClient) -> bool:
    unsorted: object = dataset.caller.get(f"{dataset.path}/pipeline").json()["stages"]["unsorted"][
        "rows"
    ]
    return unsorted == 0


async def test_a_coordinator_that_cannot_be_started_ends_the_service(
    shop: DatasetClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> Coordinator:
        raise OSError("there is no room for it")

    await asyncio.to_thread(shop.insert, "orders", {"id": 1})
    monkeypatch.setattr(idle_pipeline, "_load", broken)
    with pytest.raises(OSError, match="no room"):
        await asyncio.wait_for(idle_pipeline.Pipeline().run(), TIMEOUT_S)
