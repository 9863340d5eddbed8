"""The authority as other readers see it: as Iceberg tables with a tag for each state."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import duckdb_extension_avro
import duckdb_extension_iceberg
import pyarrow as pa

from analytics.locations import namespace_of
from analytics.pipeline.catalogue import open_catalogue, state_tag
from analytics.pipeline.collector import collect
from analytics.pipeline.decisions import PipelineStep
from tests.analytics import pipeline_steps

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from tests.analytics.dataset_client import DatasetClient

COLUMNS = ["id", "customer", "count"]


def fill(shop: DatasetClient) -> None:
    rows = [{"id": n, "customer": "ab"[n % 2], "count": n} for n in range(500)]
    shop.insert("orders", *rows)
    pipeline_steps.drain(shop)
    shop.upload(
        {"orders": {"id": 7}, "op": "delete"},
        {"orders": {"id": 8, "count": -8}, "op": "update"},
        {"orders": {"id": 1000, "customer": "c", "count": 0}},
    )
    pipeline_steps.drain(shop)


def table_of(shop: DatasetClient, name: str) -> Table:
    return open_catalogue().load_table((namespace_of(shop.id), name))


def by_pyiceberg(table: Table, tag: str) -> list[dict[str, Any]]:
    snapshot = table.snapshot_by_name(tag)
    assert snapshot is not None
    result = table.scan(selected_fields=tuple(COLUMNS), snapshot_id=snapshot.snapshot_id)
    rows: list[dict[str, Any]] = result.to_arrow().sort_by("id").to_pylist()
    return rows


def by_duckdb(table: Table, tag: str) -> list[dict[str, Any]]:
    snapshot = table.snapshot_by_name(tag)
    assert snapshot is not None
    with duckdb.connect() as connection:
        connection.execute("SET autoinstall_known_extensions = false")
        for package in (duckdb_extension_avro, duckdb_extension_iceberg):
            (extension,) = Path(next(iter(package.__path__))).rglob("*.duckdb_extension")
            connection.execute(f"LOAD '{extension}'")
        location = table.metadata_location.removeprefix("file://")
        result = connection.execute(
            f"SELECT id, customer, count FROM iceberg_scan('{location}', "
            f"snapshot_from_id = {snapshot.snapshot_id}::UBIGINT) ORDER BY id"
        ).to_arrow_table()
    rows: list[dict[str, Any]] = result.to_pylist()
    return rows


def test_other_readers_find_the_same_rows_at_each_state(shop: DatasetClient) -> None:
    fill(shop)
    for state in (1, 2):
        expected = shop.rows("orders", state=state, columns=COLUMNS)
        for name in ("orders", "orders__by_customer"):
            table = table_of(shop, name)
            assert by_pyiceberg(table, state_tag(state)) == expected
            assert by_duckdb(table, state_tag(state)) == expected


def test_a_snapshot_that_was_never_committed_is_rolled_back(shop: DatasetClient) -> None:
    from analytics.pipeline.steps import _enter_table
    from analytics.schema import tables_of

    shop.insert("orders", {"id": 1})
    pipeline_steps.do(shop, PipelineStep.SORT)
    # The process that started this died after the snapshot and before the row; the table did not
    # exist before.
    for last in range(2):
        standing, planned = (
            pipeline_steps.standing_of(shop),
            pipeline_steps.due(shop, PipelineStep.AUTHORITY),
        )
        assert planned is not None
        from analytics.pipeline import ledger

        files = ledger.inputs(shop.id, planned)
        table = tables_of(standing.definition)["orders"]
        held = ledger.authority_files(shop.id)
        entered = _enter_table(pipeline_steps.Inline(), standing, planned, table, files, held)
        before = standing.authority.snapshots if standing.authority else {}
        left = pipeline_steps.authority_of(shop).change([one[0] for one in entered], before)
        assert pipeline_steps.do(shop, PipelineStep.AUTHORITY)
        result = table_of(shop, "orders")
        assert result.current_snapshot() is not None
        assert left["orders"] not in {ref.snapshot_id for ref in result.refs().values()}
        expected = shop.rows("orders", columns=COLUMNS, freshness="any")
        assert by_pyiceberg(result, "main") == expected
        assert len(expected) == last + 1
        shop.insert("orders", {"id": last + 2})
        pipeline_steps.do(shop, PipelineStep.SORT)


def test_a_committed_state_gets_the_tag_that_it_lacks(shop: DatasetClient) -> None:
    from analytics.models import Run
    from analytics.pipeline.coordinator import Coordinator
    from tests.waiting import wait_until

    shop.insert("orders", {"id": 1})
    pipeline_steps.drain(shop)
    table_of(shop, "orders").manage_snapshots().remove_tag("state-1").commit()
    Run.unscoped.using("relay").filter(dataset_id=shop.id).update(tagged=False)
    shop.insert("orders", {"id": 2})
    coordinator = Coordinator(pipeline_steps.Inline(), lambda: None)
    coordinator._thread.start()
    try:
        wait_until(lambda: "state-1" in table_of(shop, "orders").refs(), what="the tag")
    finally:
        coordinator.end()


def test_a_snapshot_is_removed_with_its_state(shop: DatasetClient) -> None:
    from analytics.models import Dataset

    fill(shop)
    assert {"state-1", "state-2"} <= set(table_of(shop, "orders").refs())
    Dataset.unscoped.using("relay").filter(pk=shop.id).update(retention_s=0)
    collect(pipeline_steps.authority_of(shop), shop.id)
    left = table_of(shop, "orders")
    assert "state-1" not in left.refs()
    assert len(left.snapshots()) == 1
    assert by_pyiceberg(left, "state-2") == shop.rows("orders", columns=COLUMNS)


def test_a_column_that_was_added_is_in_the_table(shop: DatasetClient) -> None:
    shop.insert("stock", {"place": "a", "item": 1})
    pipeline_steps.drain(shop)
    tables = shop.caller.get(shop.control_path).json()["tables"]
    tables["stock"]["columns"]["colour"] = "string"
    shop.caller.patch(shop.control_path, {"tables": tables})
    shop.insert("stock", {"place": "b", "item": 2, "colour": "red"})
    pipeline_steps.drain(shop)
    result = table_of(shop, "stock").scan().to_arrow().sort_by("item")
    assert result["colour"].to_pylist() == [None, "red"]
    assert result.schema.field("pieces").type == pa.int64()
