"""Keys that are stored as ids: a key's id never changes, and results are the same in every
stage.
"""

from __future__ import annotations

import contextlib
import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from analytics.locations import namespace_of
from analytics.pipeline import ledger
from analytics.pipeline.catalogue import open_catalogue
from analytics.pipeline.decisions import PipelineStep
from analytics.pipeline.ledger import StepSuperseded
from analytics.pipeline.steps import run_step
from tests.analytics import pipeline_steps
from tests.analytics.dataset_client import ARROW, as_arrow, make_dataset
from tests.analytics.serial import Serial
from tests.caller import problem

if TYPE_CHECKING:
    from tests.analytics.dataset_client import DatasetClient, Json

#: Visits refer to pages by address, links refer to two pages, and visitors have separate keys.
WEB: Json = {
    "name": "web",
    "id_keys": {"page": "string", "visitor": "int64"},
    "tables": {
        "visits": {
            "columns": {
                "at": "int64",
                "page": "id:page",
                "visitor": "id:visitor",
                "note": "string",
            },
            "key": ["page", "at"],
            "views": {"by_visitor": {"key": ["visitor", "page", "at"]}},
        },
        "links": {
            "columns": {"from": "id:page", "to": "id:page", "weight": "int64"},
            "key": ["from", "to"],
            "views": {},
        },
    },
}
FRESHNESSES: tuple[object, ...] = (0, "any", 0.01, 3600)


@pytest.fixture
def web(server: str) -> DatasetClient:
    return make_dataset(server, **WEB)


class Model:
    """Rows with their keys, and all keys in the order of their first appearance."""

    def __init__(self) -> None:
        self.rows = Serial(WEB["tables"])
        self.keys: dict[str, list[Any]] = {"page": [], "visitor": []}

    def copy(self) -> Model:
        other = Model()
        other.rows = self.rows.copy()
        other.keys = {name: list(keys) for name, keys in self.keys.items()}
        return other

    def do(self, lines: list[tuple[str, str, Json]]) -> None:
        for table, op, row in lines:
            self.rows.do(table, op, row)
        for table, definition in WEB["tables"].items():
            for column, kind in definition["columns"].items():
                if kind.startswith("id:"):
                    self._come(kind[3:], [r.get(column) for t, _, r in lines if t == table])

    def _come(self, name: str, keys: list[Any]) -> None:
        known = self.keys[name]
        for key in keys:
            if key is not None and key not in known:
                known.append(key)


def random_line(rng: random.Random) -> tuple[str, str, Json]:
    op = rng.choice(["insert", "insert", "update", "delete"])
    if rng.random() < 0.5:
        row: Json = {"page": page(rng), "at": rng.randrange(3)}
        more: Json = {"visitor": rng.choice([7, 70, 700, -7]), "note": rng.choice("ab")}
    else:
        row = {"from": page(rng), "to": page(rng)}
        more = {"weight": rng.randrange(5)}
    if op != "delete":
        row |= {name: value for name, value in more.items() if rng.random() < 0.7}
    return ("visits" if "page" in row else "links"), op, row


def page(rng: random.Random) -> str:
    return f"https://example.org/{rng.randrange(12)}"


def send(web: DatasetClient, lines: list[tuple[str, str, Json]]) -> None:
    web.upload(*({table: row, "op": op} for table, op, row in lines))


def by_key(table: str, rows: list[Json]) -> list[Json]:
    key = WEB["tables"][table]["key"]
    return sorted(rows, key=lambda row: [row[name] for name in key])


def check(web: DatasetClient, states: list[Model], rng: random.Random, **asked: object) -> None:
    for table in WEB["tables"]:
        answer = web.query(table, **asked)
        assert by_key(table, answer["rows"]) == states[answer["state"]].rows.rows(table), asked
    for name in WEB["id_keys"]:
        answer = web.query(name, order=[["id", 1]], **asked)
        keys = states[answer["state"]].keys[name]
        assert answer["rows"] == [{"key": key, "id": id_} for id_, key in enumerate(keys)], asked
    answer = web.query("links", filter={"to": {"$in": [one := page(rng), "nowhere"]}}, **asked)
    rows = states[answer["state"]].rows.rows("links")
    assert by_key("links", answer["rows"]) == [row for row in rows if row["to"] == one]


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_every_key_keeps_its_only_id_whatever_is_killed(web: DatasetClient, seed: int) -> None:
    rng = random.Random(seed)
    states, workers = [Model()], pipeline_steps.Failing(rng, 0.2)
    chances = (
        (PipelineStep.REMAP, 0.6),
        (PipelineStep.SORT, 0.6),
        (PipelineStep.MERGE, 0.5),
        (PipelineStep.AUTHORITY, 0.2),
    )
    for _ in range(20):
        model = states[-1].copy()
        lines = [random_line(rng) for _ in range(rng.randrange(1, 8))]
        model.do(lines)
        send(web, lines)
        states.append(model)
        for step, likely in chances:
            if rng.random() < likely:
                with contextlib.suppress(OSError):
                    pipeline_steps.do(web, step, workers)
        if rng.random() < 0.3:
            check(web, states, rng, freshness=rng.choice(FRESHNESSES))
            check(web, states, rng, state=rng.randrange(len(states)))
    pipeline_steps.drain(web)
    for freshness in FRESHNESSES:
        check(web, states, rng, freshness=freshness)
    for state in rng.sample(range(len(states)), 4):
        check(web, states, rng, state=state)


@pytest.mark.parametrize(
    "stage", [None, PipelineStep.REMAP, PipelineStep.SORT, PipelineStep.AUTHORITY]
)
def test_queries_name_keys_and_are_answered_with_keys(
    web: DatasetClient, stage: PipelineStep | None
) -> None:
    lines = [
        ("visits", "insert", {"page": "/b", "at": 1, "visitor": 9}),
        ("visits", "insert", {"page": "/a", "at": 2, "visitor": 9}),
        ("visits", "insert", {"page": "/b", "at": 3, "visitor": 8}),
        ("visits", "insert", {"page": "/c", "at": 4}),
    ]
    send(web, lines[:2])
    send(web, lines[2:])
    for step in (PipelineStep.REMAP, PipelineStep.SORT, PipelineStep.AUTHORITY):
        if stage is not None and list(PipelineStep).index(step) <= list(PipelineStep).index(stage):
            assert pipeline_steps.do(web, step)

    def places(**asked: object) -> list[int]:
        return [row["at"] for row in web.rows("visits", columns=["at"], **asked)]

    assert places(filter={"page": "/b"}) == [1, 3]
    assert places(filter={"visitor": {"$in": [8, 5]}}) == [3]
    assert places(filter={"page": {"$ne": "/b"}}, order=[["page", -1]]) == [4, 2]
    assert places(filter={"visitor": None}) == [4]
    assert places(filter={"page": "/nowhere"}) == []
    groups = web.rows(
        "visits",
        group_by=["page"],
        aggregates={"visits": {"op": "count"}, "visitors": {"op": "distinct", "column": "visitor"}},
        having={"page": {"$nin": ["/c"]}},
        order=[["page", 1]],
    )
    assert groups == [
        {"page": "/a", "visits": 1, "visitors": 1},
        {"page": "/b", "visits": 2, "visitors": 2},
    ]
    assert web.rows("page", filter={"key": "/a"}) == [{"key": "/a", "id": 1}]
    assert web.rows("page", filter={"id": 2}) == [{"key": "/c", "id": 2}]


def test_ids_are_dense_over_many_uploads_in_columns(web: DatasetClient) -> None:
    for first in (0, 1500, 3000):
        pages = [f"/{n % 4000}" for n in range(first, first + 2500)]
        rows = pa.table({"page": pages, "at": list(range(first, first + 2500))})
        assert web.send("uploads", as_arrow(rows), ARROW, table="visits").status_code == 201
        if first:
            pipeline_steps.do(web, PipelineStep.REMAP)
    pipeline_steps.drain(web)
    ids = web.rows("page", order=[["id", 1]], limit=5000, freshness="any")
    assert ids == [{"key": f"/{n}", "id": n} for n in range(4000)]
    table = open_catalogue().load_table((namespace_of(web.id), "visits"))
    result = table.scan(selected_fields=("page", "at")).to_arrow().sort_by("at").to_pylist()
    assert result == [{"page": n % 4000, "at": n} for n in range(5500)]


def test_ids_that_two_assign_count_once(web: DatasetClient) -> None:
    send(web, [("links", "insert", {"from": "/a", "to": "/b"})])
    standing, planned = pipeline_steps.standing_of(web), pipeline_steps.due(web, PipelineStep.REMAP)
    assert planned is not None
    assert pipeline_steps.do(web, PipelineStep.REMAP)
    with pytest.raises(StepSuperseded):
        run_step(pipeline_steps.Inline(), pipeline_steps.authority_of(web), standing, planned)
    standing, planned = pipeline_steps.standing_of(web), pipeline_steps.due(web, PipelineStep.SORT)
    ledger.take_over()
    assert planned is not None
    with pytest.raises(StepSuperseded):
        run_step(pipeline_steps.Inline(), pipeline_steps.authority_of(web), standing, planned)
    pipeline_steps.drain(web)
    assert len(web.rows("page", freshness="any")) == 2


def test_the_pipeline_shows_uploads_whose_keys_have_ids(web: DatasetClient) -> None:
    send(web, [("links", "insert", {"from": "/a", "to": "/b"})])
    pipeline_steps.do(web, PipelineStep.REMAP)
    send(web, [("links", "insert", {"from": "/a", "to": "/c"})])
    answer = web.caller.get(f"{web.path}/pipeline").json()
    assert [upload["stage"] for upload in answer["uploads"]] == ["unsorted", "remapped"]
    assert (answer["stages"]["remapped"]["first"], answer["stages"]["remapped"]["rows"]) == (1, 1)
    assert answer["stages"]["unsorted"]["first"] == 2


def test_a_column_of_an_id_key_may_be_added(web: DatasetClient) -> None:
    send(web, [("links", "insert", {"from": "/a", "to": "/b", "weight": 1})])
    tables = web.caller.get(web.control_path).json()["tables"]
    tables["links"]["columns"]["by"] = "id:author"
    planned = {"tables": tables, "id_keys": {**WEB["id_keys"], "author": "string"}}
    assert web.caller.patch(web.control_path, planned).status_code == 200
    send(web, [("links", "update", {"from": "/a", "to": "/b", "by": "ada"})])
    expected = [{"from": "/a", "to": "/b", "weight": 1, "by": "ada"}]
    assert web.rows("links") == expected
    pipeline_steps.drain(web)
    assert web.rows("links", freshness="any") == expected


@pytest.mark.parametrize(
    "asked",
    [
        {"filter": {"page": {"$gt": "/a"}}},
        {"filter": {"page": 1}},
        {"aggregates": {"first": {"op": "min", "column": "page"}}},
        {"aggregates": {"sum": {"op": "sum", "column": "visitor"}}},
    ],
)
def test_queries_that_need_ordered_keys_are_rejected(web: DatasetClient, asked: Json) -> None:
    answer = web.caller.post(f"{web.path}/query", {"table": "visits", **asked})
    assert answer.status_code == 400, answer.text


def test_uploads_cannot_contain_ids(web: DatasetClient) -> None:
    answer = web.send("uploads", as_arrow(pa.table({"key": ["/a"]})), ARROW, table="page")
    problem(answer, 400, "invalid_parameter")


@pytest.mark.parametrize(
    "wrong",
    [
        {"id_keys": {}},
        {"id_keys": {"page": "string", "visitor": "double"}},
        {"id_keys": {"page": "string", "visitor": "int64", "links": "string"}},
        {"tables": {"a": {"columns": {"b": "id:"}, "key": ["b"]}}},
    ],
)
def test_definitions_with_inconsistent_id_keys_are_rejected(
    web: DatasetClient, wrong: Json
) -> None:
    address = web.control_path.rsplit("/", 1)[0]
    answer = web.caller.post(address, {**WEB, "name": "other", **wrong})
    problem(answer, 400, "invalid_body")


def test_an_id_key_stays_as_it_is(web: DatasetClient) -> None:
    for id_keys in ({"page": "string"}, {"page": "int64", "visitor": "int64"}):
        answer = web.caller.patch(web.control_path, {"id_keys": id_keys})
        problem(answer, 400, "invalid_body")
