"""ID-keys of several parts, such as a host and a path, are stored as one integer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from analytics.locations import namespace_of
from analytics.pipeline.catalogue import open_catalogue
from analytics.pipeline.decisions import PipelineStep
from tests.analytics import pipeline_steps
from tests.analytics.dataset_client import ARROW, NDJSON, as_arrow, as_lines, make_dataset
from tests.caller import problem

if TYPE_CHECKING:
    from tests.analytics.dataset_client import DatasetClient, Json

FILES: Json = {
    "name": "files",
    "id_keys": {"file": {"host": "string", "path": "string", "disk": "int64"}},
    "tables": {
        "sizes": {
            "columns": {"file": "id:file", "bytes": "int64", "copy": "id:file"},
            "key": ["file"],
        }
    },
}
#: If simply concatenated, some of these would be equal.
KEYS: list[Json] = [
    {"host": "b", "path": "/", "disk": 10},
    {"host": "a", "path": '/","b', "disk": 9},
    {"host": 'a","/', "path": "b", "disk": 9},
    {"host": "a", "path": "\\", "disk": 9},
    {"host": "a\\", "path": "", "disk": 9},
    {"host": "é\n\t", "path": "\x01", "disk": -1},
    {"host": "b", "path": "/", "disk": 9},
]
STAGES = [None, PipelineStep.REMAP, PipelineStep.SORT, PipelineStep.AUTHORITY]


@pytest.fixture
def files(server: str) -> DatasetClient:
    return make_dataset(server, **FILES)


def move(files: DatasetClient, stage: PipelineStep | None) -> None:
    for step in (PipelineStep.REMAP, PipelineStep.SORT, PipelineStep.AUTHORITY):
        if stage is not None and list(PipelineStep).index(step) <= list(PipelineStep).index(stage):
            assert pipeline_steps.do(files, step)


def in_order(key: Json) -> list[Any]:
    return [key["host"], key["path"], key["disk"]]


@pytest.mark.parametrize("stage", STAGES)
def test_a_key_of_several_parts_is_one_number_in_every_stage(
    files: DatasetClient, stage: PipelineStep | None
) -> None:
    files.insert("sizes", *({"file": key, "bytes": n} for n, key in enumerate(KEYS)))
    files.upload(
        {"sizes": {"file": KEYS[2], "copy": KEYS[0]}, "op": "update"},
        {"sizes": {"file": KEYS[3]}, "op": "delete"},
    )
    move(files, stage)
    expected = [
        {"file": key, "bytes": n, "copy": KEYS[0] if n == 2 else None}
        for n, key in sorted(enumerate(KEYS), key=lambda pair: in_order(pair[1]))
        if n != 3
    ]
    assert files.rows("sizes", order=[["file", 1]]) == expected
    assert files.rows("sizes", order=[["file", -1]]) == expected[::-1]
    for n in (0, 2, 5):
        assert [row["bytes"] for row in files.rows("sizes", filter={"file": KEYS[n]})] == [n]
    some = {"file": {"$in": [KEYS[1], KEYS[4], {"host": "x", "path": "", "disk": 0}]}}
    assert sorted(row["bytes"] for row in files.rows("sizes", filter=some)) == [1, 4]
    others = {"file": {"$ne": KEYS[0]}, "copy": {"$exists": False}}
    assert sorted(row["bytes"] for row in files.rows("sizes", filter=others)) == [1, 4, 5, 6]
    groups = files.rows("sizes", group_by=["copy"], order=[["copy", 1]])
    assert groups == [{"copy": KEYS[0], "count": 1}, {"copy": None, "count": 5}]
    ids = files.rows("file", columns=["id", "host", "path", "disk"], order=[["id", 1]])
    assert ids == [{"id": n, **key} for n, key in enumerate(KEYS)]


def test_composite_keys_are_uploaded_and_returned_in_columns(files: DatasetClient) -> None:
    keys = [{"host": f"h{n % 3}", "path": f"/{n}", "disk": n % 2} for n in range(500)]
    sent = pa.table({"file": keys, "bytes": list(range(500))})
    assert files.send("uploads", as_arrow(sent), ARROW, table="sizes").status_code == 201
    pipeline_steps.drain(files)
    answer = files.caller.call(
        "POST",
        f"{files.path}/query",
        {"table": "sizes", "columns": ["file", "bytes"], "order": [["bytes", 1]]},
        Accept=ARROW,
    )
    with pa.ipc.open_stream(answer.content) as stream:
        rows = stream.read_all().to_pylist()
    assert rows == [{"file": key, "bytes": n} for n, key in enumerate(keys)]
    table = open_catalogue().load_table((namespace_of(files.id), "file"))
    columns = table.scan(selected_fields=("id", "host", "path", "disk")).to_arrow()
    assert columns.sort_by("id").drop_columns(["id"]).to_pylist() == keys


@pytest.mark.parametrize(
    "key",
    [
        "a/b",
        {"host": "a", "path": "/"},
        {"host": "a", "path": "/", "disk": None},
        {"host": "a", "path": "/", "disk": "c"},
        {"host": "a", "path": "/", "disk": 1, "more": 1},
    ],
)
def test_what_is_no_key_is_refused(files: DatasetClient, key: object) -> None:
    lines = as_lines([{"sizes": {"file": key}}])
    problem(files.send("uploads", lines, NDJSON), 400, "invalid_upload")
    answer = files.caller.post(f"{files.path}/query", {"table": "sizes", "filter": {"copy": key}})
    problem(answer, 400, "invalid_filter")
    assert files.query("sizes")["state"] == 0


@pytest.mark.parametrize(
    "kind",
    [
        {"host": "string"},
        {"host": "string", "path": "double"},
        {"host": "string", "id": "string"},
        {"host": "string", "Key": "string"},
        {"host": "string", "Host": "string"},
        {"host": "string", "a path": "string"},
    ],
)
def test_parts_that_make_no_sense_are_refused(files: DatasetClient, kind: Json) -> None:
    address = files.control_path.rsplit("/", 1)[0]
    answer = files.caller.post(address, {**FILES, "name": "other", "id_keys": {"file": kind}})
    problem(answer, 400, "invalid_body")
