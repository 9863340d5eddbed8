"""The stages: however far they have progressed, every state gives the same results."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
from typing import TYPE_CHECKING

import pytest

from analytics.pipeline import blocks, changes, ledger
from analytics.pipeline.collector import collect, datasets_with_leftovers, sweep
from analytics.pipeline.decisions import BatchLimits, PipelineStep
from analytics.pipeline.ledger import StepSuperseded
from analytics.pipeline.steps import run_step
from foundation.scope import scoped
from tests.analytics import pipeline_steps
from tests.analytics.dataset_client import SHOP, make_dataset
from tests.analytics.serial import Serial
from tests.analytics.test_model import check, random_upload
from tests.caller import problem

if TYPE_CHECKING:
    from pathlib import Path

    from tests.analytics.dataset_client import DatasetClient, Json

FRESHNESSES: tuple[object, ...] = (0, "any", 0.01, 3600)


def stages(shop: DatasetClient, table: str = "orders", **body: object) -> dict[str, int]:
    read = shop.query(table, **body)["read"]
    return {stage: figures["files"] for stage, figures in read.items() if figures["files"]}


def test_an_upload_moves_from_stage_to_stage(shop: DatasetClient) -> None:
    name = shop.insert("orders", {"id": 1}, {"id": 2})["id"]

    def stage() -> str:
        result: str = shop.caller.get(f"{shop.path}/uploads/{name}").json()["stage"]
        return result

    assert (stage(), stages(shop)) == ("unsorted", {"unsorted": 1})
    assert pipeline_steps.do(shop, PipelineStep.SORT)
    assert (stage(), stages(shop)) == ("sorted", {"sorted": 1})
    assert shop.query("orders", freshness="any")["rows"] == []
    assert pipeline_steps.do(shop, PipelineStep.AUTHORITY)
    assert (stage(), stages(shop)) == ("authority", {"authority": 1})
    assert [row["id"] for row in shop.rows("orders", freshness="any")] == [1, 2]
    assert stages(shop, filter={"id": 7}) == {}, "no file can hold this key"


def test_eight_runs_of_a_level_become_one_of_the_next(shop: DatasetClient) -> None:
    for number in range(8):
        shop.insert("orders", {"id": number % 3, "count": number})
        assert pipeline_steps.due(shop, PipelineStep.MERGE) is None
        assert pipeline_steps.do(shop, PipelineStep.SORT)
    never = BatchLimits(scu_bytes=10**12, scu_age_s=0.0, authority_age_s=1e9)
    assert stages(shop) == {"sorted": 8}
    assert pipeline_steps.do(shop, PipelineStep.MERGE, limits=never)
    assert stages(shop) == {"merged": 1}
    assert [row["count"] for row in shop.rows("orders", columns=["count"])] == [6, 7, 5]
    assert shop.query("orders", state=5, columns=["count"])["rows"] == [
        {"count": 3},
        {"count": 4},
        {"count": 2},
    ]


def test_a_view_follows_what_its_key_does(shop: DatasetClient) -> None:
    by_ada: Json = {"customer": "ada"}
    shop.insert("orders", {"id": 1, "customer": "ada"}, {"id": 2, "customer": "bob"})
    pipeline_steps.drain(shop)
    shop.upload(
        {"orders": {"id": 1, "customer": "bob"}, "op": "update"},
        {"orders": {"id": 2}, "op": "delete"},
        {"orders": {"id": 3, "customer": "ada"}},
    )
    assert [row["id"] for row in shop.rows("orders", filter=by_ada)] == [3]
    pipeline_steps.drain(shop)
    assert [row["id"] for row in shop.rows("orders", filter=by_ada)] == [3]
    assert [row["id"] for row in shop.rows("orders", filter={"customer": "bob"})] == [1]


def test_what_does_not_fit_into_memory_reaches_views_in_parts(
    shop: DatasetClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 1)
    monkeypatch.setattr(changes, "PART_BYTES", 1)
    rng = random.Random(1)
    customers: dict[int, str] = {}
    for _ in range(3):
        # In each of several row groups, rows move between customers and some are deleted.
        ids = rng.sample(range(3_000), 2_000)
        gone, moved = ids[:200], {id_: f"c{rng.randrange(5)}" for id_ in ids[200:]}
        shop.upload(
            *({"orders": {"id": id_}, "op": "delete"} for id_ in gone),
            *({"orders": {"id": id_, "customer": name}} for id_, name in moved.items()),
        )
        customers = {i: c for i, c in customers.items() if i not in gone} | moved
        pipeline_steps.drain(shop)
    for name in set(customers.values()):
        rows = shop.rows("orders", filter={"customer": name}, columns=["id"], limit=10_000)
        assert [row["id"] for row in rows] == sorted(i for i, c in customers.items() if c == name)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_every_freshness_is_answered_from_the_stages_that_exist(
    shop: DatasetClient, seed: int
) -> None:
    rng = random.Random(seed)
    states = [Serial(SHOP["tables"])]
    workers = pipeline_steps.Failing(rng, 0.2)
    for _ in range(25):
        model = states[-1].copy()
        shop.upload(*random_upload(rng, model))
        states.append(model)
        for step, likely in (
            (PipelineStep.SORT, 0.6),
            (PipelineStep.MERGE, 0.5),
            (PipelineStep.AUTHORITY, 0.15),
        ):
            if rng.random() < likely:
                with contextlib.suppress(OSError):
                    pipeline_steps.do(shop, step, workers)
        if rng.random() < 0.3:
            check(shop, states, freshness=rng.choice(FRESHNESSES))
            check(shop, states, state=rng.randrange(len(states)))
    pipeline_steps.drain(shop)
    for freshness in FRESHNESSES:
        check(shop, states, freshness=freshness)
    assert set(stages(shop)) <= {"authority"}
    last = states[-1].rows("orders")
    for name in ("ada", "bob", ""):
        expected = [row for row in last if row["customer"] == name]
        rows = shop.rows("orders", filter={"customer": name})
        assert rows == expected
    for state in rng.sample(range(len(states)), 5):
        check(shop, states, state=state)


def test_columns_that_are_added_later_go_through_all_stages(shop: DatasetClient) -> None:
    shop.insert("stock", {"place": "a", "item": 1, "pieces": 1})
    pipeline_steps.drain(shop)
    tables = shop.caller.get(shop.control_path).json()["tables"]
    tables["stock"]["columns"]["colour"] = "string"
    assert shop.caller.patch(shop.control_path, {"tables": tables}).status_code == 200
    shop.insert("stock", {"place": "b", "item": 2, "colour": "red"})
    shop.upload({"stock": {"place": "a", "item": 1, "colour": "blue"}, "op": "update"})
    stocked = [
        {"place": "a", "pieces": 1, "colour": "blue"},
        {"place": "b", "pieces": None, "colour": "red"},
    ]
    columns = ["place", "pieces", "colour"]
    assert shop.rows("stock", columns=columns) == stocked
    pipeline_steps.drain(shop)
    assert shop.rows("stock", columns=columns) == stocked


def test_results_of_a_replaced_worker_are_ignored(shop: DatasetClient) -> None:
    shop.insert("orders", {"id": 1})
    standing = pipeline_steps.standing_of(shop)
    planned = pipeline_steps.due(shop, PipelineStep.SORT)
    assert planned is not None
    ledger.take_over()
    with pytest.raises(StepSuperseded):
        run_step(pipeline_steps.Inline(), pipeline_steps.authority_of(shop), standing, planned)
    assert stages(shop) == {"unsorted": 1}


@pytest.mark.parametrize("step", [PipelineStep.SORT, PipelineStep.AUTHORITY])
def test_a_step_that_two_do_is_done_once(shop: DatasetClient, step: PipelineStep) -> None:
    shop.insert("orders", {"id": 1})
    if step is PipelineStep.AUTHORITY:
        pipeline_steps.do(shop, PipelineStep.SORT)
    standing, planned = pipeline_steps.standing_of(shop), pipeline_steps.due(shop, step)
    assert planned is not None
    assert pipeline_steps.do(shop, step)
    with pytest.raises(StepSuperseded):
        run_step(pipeline_steps.Inline(), pipeline_steps.authority_of(shop), standing, planned)
    assert len(shop.rows("orders")) == 1
    shop.insert("orders", {"id": 2})
    pipeline_steps.drain(shop)
    assert len(shop.rows("orders", freshness="any")) == 2


def test_an_unreadable_file_stops_its_dataset_with_a_reason(
    shop: DatasetClient, settings_environment: pytest.MonkeyPatch
) -> None:
    from analytics.models import Dataset, StoredFile
    from analytics.pipeline import coordinator as coordinators
    from tests.analytics.dataset_client import files_of
    from tests.waiting import wait_until

    settings_environment.setenv("RILLBASE_ANALYTICS_BATCH_AGE_S", "0")
    settings_environment.setattr(coordinators, "PAUSE_S", 0.2)
    shop.insert("orders", {"id": 1})
    path = files_of(shop.id) / StoredFile.unscoped.using("relay").get(dataset_id=shop.id).path
    whole = path.read_bytes()
    path.write_bytes(b"nothing of the kind")
    other = make_dataset(shop.caller.base, account=shop.account, name="other")
    other.insert("orders", {"id": 2})

    def error() -> str:
        return Dataset.unscoped.using("relay").get(pk=shop.id).pipeline_error

    def is_sorted(dataset: DatasetClient) -> bool:
        return "unsorted" not in stages(dataset)

    coordinator = coordinators.Coordinator(pipeline_steps.Inline(), lambda: None)
    coordinator._thread.start()
    try:
        wait_until(lambda: bool(error()), what="the pipeline to say what is wrong")
        assert error().startswith("sort: ")
        wait_until(lambda: is_sorted(other), what="the other dataset to go on")
        path.write_bytes(whole)
        wait_until(lambda: is_sorted(shop), what="the dataset to go on once it can be read")
        assert error() == ""
    finally:
        coordinator.end()


def test_files_are_kept_as_long_as_a_query_may_request_their_state(server: str) -> None:
    from analytics.models import StoredFile
    from tests.analytics.dataset_client import files_of

    shop = make_dataset(server, retention_s=3600)
    for number in range(3):
        shop.insert("orders", {"id": number})
        pipeline_steps.drain(shop)
    authority = pipeline_steps.authority_of(shop)
    assert shop.id in datasets_with_leftovers()
    assert collect(authority, shop.id) == 0
    assert len(shop.query("orders", state=1)["rows"]) == 1
    with scoped(tenant_id=shop.account.tenant.id):
        from analytics.models import Dataset

        Dataset.objects.filter(pk=shop.id).update(retention_s=0)
    assert collect(authority, shop.id) > 0
    assert shop.id not in datasets_with_leftovers()
    answer = shop.caller.post(f"{shop.path}/query", {"table": "orders", "state": 1})
    problem(answer, 410, "state_expired")
    assert len(shop.rows("orders")) == 3
    with scoped(tenant_id=shop.account.tenant.id):
        kept = {files_of(shop.id) / file.path for file in StoredFile.objects.all()}
        size = sum(file.bytes for file in StoredFile.objects.all())
    folder = files_of(shop.id)
    result = {path for path in folder.rglob("*") if path.is_file()}
    assert {p for p in result if "iceberg" not in p.parts} == kept
    assert shop.caller.get(shop.control_path).json()["stored_bytes"] == size


def test_the_pipeline_shows_the_progress_of_uploads(shop: DatasetClient) -> None:
    def pipeline() -> Json:
        body: Json = shop.caller.get(f"{shop.path}/pipeline").json()
        return body

    shop.insert("orders", {"id": 1}, {"id": 2})
    pipeline_steps.drain(shop)
    shop.insert("orders", {"id": 3})
    pipeline_steps.do(shop, PipelineStep.SORT)
    shop.insert("orders", {"id": 4})
    answer = pipeline()
    assert (answer["state"], answer["authority_state"], answer["error"]) == (3, 1, None)
    held = {name: (s["first"], s["last"], s["rows"]) for name, s in answer["stages"].items()}
    assert held == {
        "unsorted": (3, 3, 1),
        "sorted": (2, 2, 1),
        "merged": (None, None, 0),
        "authority": (1, 1, 2),
    }
    assert answer["stages"]["authority"]["lag_s"] > answer["stages"]["sorted"]["lag_s"] > 0
    assert [upload["stage"] for upload in answer["uploads"]] == ["unsorted", "sorted", "authority"]
    reads = {read["freshness"]: read for read in answer["reads"]}
    assert reads["any"]["files"] == {"authority": 1}
    assert reads[0]["files"] == {"authority": 1, "sorted": 1, "unsorted": 1}
    assert answer["iceberg"]["tag"] == "state-1"


async def test_the_first_upload_starts_the_coordinator(
    shop: DatasetClient, settings_environment: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from analytics.pipeline.idle_pipeline import Pipeline
    from tests.background_service import running_service
    from tests.waiting import until

    settings_environment.setenv("RILLBASE_ANALYTICS_DIR", str(tmp_path))
    async with running_service(Pipeline()) as pipeline:
        await until(lambda: pipeline.ready, "the pipeline to look for work")
        assert pipeline.status()["leading"] is False, "no dataset has anything to move"
        await asyncio.to_thread(shop.insert, "orders", {"id": 1})
        await until(lambda: pipeline.status()["leading"] is True, "the pipeline to lead")


def test_unreferenced_files_are_removed_once_they_are_old(shop: DatasetClient) -> None:
    from tests.analytics.dataset_client import files_of

    shop.insert("orders", {"id": 1})
    pipeline_steps.drain(shop)
    folder = files_of(shop.id)
    strays = [folder / "segments" / "a.arrow", folder / "authority" / "b.parquet"]
    known = [path for path in folder.rglob("*.parquet") if path.is_file()]
    for path in strays:
        path.write_bytes(b"begun and never ended")
    assert sweep(pipeline_steps.authority_of(shop), shop.id) == 0, "it may still be on its way"
    for path in [*strays, *known]:
        os.utime(path, (0, 0))
    assert sweep(pipeline_steps.authority_of(shop), shop.id) == 2
    assert not any(path.exists() for path in strays)
    assert all(path.exists() for path in known)
    assert len(shop.rows("orders")) == 1
