"""Faults during the processing of uploads: nothing is lost, no upload is partly visible, and
processing continues.
"""

from __future__ import annotations

import random
import socket
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pyarrow as pa
import pytest

from analytics.pipeline.decisions import BatchLimits, PipelineStep
from analytics.pipeline.settle import EAGER
from foundation.errors import StorageFull
from tests.analytics import pipeline_steps
from tests.analytics.dataset_client import ARROW, as_arrow, files_of, make_dataset
from tests.analytics.test_id_keys import WEB, by_key
from tests.full_disk import full_disk
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.analytics.dataset_client import DatasetClient

ROWS = 40_000
#: Runs are merged, and do not enter the authority.
PATIENT = BatchLimits(scu_bytes=10**12, scu_age_s=0.0, authority_age_s=1e9)


def paths(dataset: DatasetClient) -> set[Path]:
    return {path for path in files_of(dataset.id).rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "step", [PipelineStep.REMAP, PipelineStep.SORT, PipelineStep.MERGE, PipelineStep.AUTHORITY]
)
def test_a_stage_on_a_full_disk_leaves_nothing_and_is_done_again(
    server: str, step: PipelineStep
) -> None:
    web = make_dataset(server, **WEB)
    rng = random.Random(1)
    uploads = 8 if step is PipelineStep.MERGE else 1
    for number in range(uploads):
        pages = [f"/{rng.getrandbits(64):x}" for _ in range(ROWS // uploads)]
        rows = pa.table({"page": pages, "at": [number] * len(pages)})
        assert web.send("uploads", as_arrow(rows), ARROW, table="visits").status_code == 201
        for before in (PipelineStep.REMAP, PipelineStep.SORT):
            if list(PipelineStep).index(before) < list(PipelineStep).index(step):
                assert pipeline_steps.do(web, before)
    count = {"group_by": [], "aggregates": {"n": {"op": "count"}}}
    known = paths(web)
    limits = PATIENT if step is PipelineStep.MERGE else EAGER
    assert pipeline_steps.due(web, step, limits) is not None
    with full_disk(100_000), pytest.raises(StorageFull):
        pipeline_steps.do(web, step, limits=limits)
    assert {path for path in paths(web) - known if "iceberg" not in path.parts} == set()
    assert web.rows("visits", **count) == [{"n": ROWS}]
    pipeline_steps.drain(web)
    assert web.rows("visits", **count, freshness="any") == [{"n": ROWS}]
    assert web.rows("page", **count, freshness="any") == [{"n": ROWS}]


def test_an_upload_whose_client_breaks_off_leaves_nothing(shop: DatasetClient) -> None:
    body = as_arrow(pa.table({"id": list(range(200_000))}))
    address = urlsplit(shop.caller.base)
    incoming = files_of(shop.id) / "incoming"
    with socket.create_connection((address.hostname or "", address.port or 0)) as connection:
        head = f"POST {shop.path}/uploads?table=orders HTTP/1.1\r\nHost: {address.netloc}\r\n"
        request_headers = {
            **shop.caller.headers,
            "Content-Type": ARROW,
            "Content-Length": str(len(body) * 2),
        }
        for name, value in request_headers.items():
            head += f"{name}: {value}\r\n"
        connection.sendall(f"{head}\r\n".encode() + body)
        wait_until(
            lambda: incoming.exists() and any(incoming.iterdir()), what="what has come so far"
        )
    wait_until(lambda: paths(shop) == set(), what="it to be removed")
    assert shop.query("orders")["state"] == 0
    assert shop.upload({"orders": {"id": 1}})["state"] == 1


def test_a_missing_file_stops_its_dataset_and_no_other(shop: DatasetClient) -> None:
    shop.insert("orders", {"id": 1})
    (path,) = paths(shop)
    kept = path.read_bytes()
    path.unlink()
    other = make_dataset(shop.caller.base, account=shop.account, name="other")
    other.insert("orders", {"id": 2})
    with pytest.raises(FileNotFoundError):
        pipeline_steps.do(shop, PipelineStep.SORT)
    pipeline_steps.drain(other)
    assert len(other.rows("orders", freshness="any")) == 1
    path.write_bytes(kept)
    pipeline_steps.drain(shop)
    assert len(shop.rows("orders", freshness="any")) == 1


def test_a_client_that_passes_on_its_last_state_never_reads_an_older_one(server: str) -> None:
    web = make_dataset(server, **WEB)
    state = 0
    for number in range(12):
        web.upload({"links": {"from": f"/{number % 3}", "to": "/x", "weight": number}})
        for step in (PipelineStep.REMAP, PipelineStep.SORT):
            if number % 2:
                pipeline_steps.do(web, step)
        if number == 7:
            pipeline_steps.drain(web)
        for freshness in ("any", 3600, 0, "any"):
            answer = web.query("links", freshness=freshness, since=state)
            assert answer["state"] >= state
            state = answer["state"]
            weights = [row["weight"] for row in by_key("links", answer["rows"])]
            assert max(weights, default=-1) == state - 1
