"""The authority as other readers see it: Iceberg tables, with a tag for each state."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import duckdb_ext
import pyarrow as pa

from analytics.pipeline.catalogue import open_catalogue, state_tag
from analytics.pipeline.collector import collect
from analytics.pipeline.decisions import PipelineStep
from analytics.places import namespace_of
from tests.analytics import backstage

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from tests.analytics.made import Made

COLUMNS = ["id", "customer", "count"]


def fill(shop: Made) -> None:
    rows = [{"id": n, "customer": "ab"[n % 2], "count": n} for n in range(500)]
    shop.insert("orders", *rows)
    backstage.drain(shop)
    shop.upload(
        {"orders": {"id": 7}, "op": "delete"},
        {"orders": {"id": 8, "count": -8}, "op": "update"},
        {"orders": {"id": 1000, "customer": "c", "count": 0}},
    )
    backstage.drain(shop)


def table_of(shop: Made, name: str) -> Table:
    return open_catalogue().load_table((namespace_of(shop.id), name))


def by_pyiceberg(table: Table, tag: str) -> list[dict[str, Any]]:
    snapshot = table.snapshot_by_name(tag)
    assert snapshot is not None
    found = table.scan(selected_fields=tuple(COLUMNS), snapshot_id=snapshot.snapshot_id)
    rows: list[dict[str, Any]] = found.to_arrow().sort_by("id").to_pylist()
    return rows


def by_duckdb(table: Table, tag: str) -> list[dict[str, Any]]:
    snapshot = table.snapshot_by_name(tag)
    assert snapshot is not None
    with duckdb.connect() as connection:
        folder = Path(next(iter(duckdb_ext.__path__))) / "extensions"
        connection.execute("SET extension_directory = ?", (str(folder),))
        connection.execute("SET autoinstall_known_extensions = false")
        connection.execute("LOAD avro")
        connection.execute("LOAD iceberg")
        location = table.metadata_location.removeprefix("file://")
        found = connection.execute(
            f"SELECT id, customer, count FROM iceberg_scan('{location}', "
            f"snapshot_from_id = {snapshot.snapshot_id}::UBIGINT) ORDER BY id"
        ).fetch_arrow_table()
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows


def test_other_readers_find_the_same_rows_at_each_state(shop: Made) -> None:
    fill(shop)
    for state in (1, 2):
        expected = shop.rows("orders", state=state, columns=COLUMNS)
        for name in ("orders", "orders__by_customer"):
            table = table_of(shop, name)
            assert by_pyiceberg(table, state_tag(state)) == expected
            assert by_duckdb(table, state_tag(state)) == expected


def test_a_snapshot_that_was_never_committed_is_rolled_back(shop: Made) -> None:
    from analytics.pipeline.steps import _enter_table
    from analytics.schema import tables_of

    shop.insert("orders", {"id": 1})
    backstage.do(shop, PipelineStep.SORT)
    # Whoever began this died behind the snapshot and before the row: first there was no table yet.
    for last in range(2):
        standing, wanted = backstage.standing_of(shop), backstage.due(shop, PipelineStep.AUTHORITY)
        assert wanted is not None
        from analytics.pipeline import ledger

        files = ledger.inputs(shop.id, wanted)
        table = tables_of(standing.definition)["orders"]
        held = ledger.authority_files(shop.id)
        entered = _enter_table(backstage.Inline(), standing, wanted, table, files, held)
        before = standing.authority.snapshots if standing.authority else {}
        left = backstage.authority_of(shop).change([one[0] for one in entered], before)
        assert backstage.do(shop, PipelineStep.AUTHORITY)
        found = table_of(shop, "orders")
        assert found.current_snapshot() is not None
        assert left["orders"] not in {ref.snapshot_id for ref in found.refs().values()}
        expected = shop.rows("orders", columns=COLUMNS, freshness="any")
        assert by_pyiceberg(found, "main") == expected
        assert len(expected) == last + 1
        shop.insert("orders", {"id": last + 2})
        backstage.do(shop, PipelineStep.SORT)


def test_a_committed_state_gets_the_tag_that_it_lacks(shop: Made) -> None:
    from analytics.models import Run
    from analytics.pipeline.coordinator import Coordinator
    from tests.waiting import wait_until

    shop.insert("orders", {"id": 1})
    backstage.drain(shop)
    table_of(shop, "orders").manage_snapshots().remove_tag("state-1").commit()
    Run.unscoped.using("relay").filter(dataset_id=shop.id).update(tagged=False)
    shop.insert("orders", {"id": 2})
    coordinator = Coordinator(backstage.Inline(), lambda: None)
    coordinator._thread.start()
    try:
        wait_until(lambda: "state-1" in table_of(shop, "orders").refs(), what="the tag")
    finally:
        coordinator.end()


def test_a_states_snapshot_goes_with_the_state(shop: Made) -> None:
    from analytics.models import Dataset

    fill(shop)
    assert {"state-1", "state-2"} <= set(table_of(shop, "orders").refs())
    Dataset.unscoped.using("relay").filter(pk=shop.id).update(retention_s=0)
    collect(backstage.authority_of(shop), shop.id)
    left = table_of(shop, "orders")
    assert "state-1" not in left.refs()
    assert len(left.snapshots()) == 1
    assert by_pyiceberg(left, "state-2") == shop.rows("orders", columns=COLUMNS)


def test_a_column_that_was_added_is_in_the_table(shop: Made) -> None:
    shop.insert("stock", {"place": "a", "item": 1})
    backstage.drain(shop)
    tables = shop.caller.get(shop.control_path).json()["tables"]
    tables["stock"]["columns"]["colour"] = "string"
    shop.caller.patch(shop.control_path, {"tables": tables})
    shop.insert("stock", {"place": "b", "item": 2, "colour": "red"})
    backstage.drain(shop)
    found = table_of(shop, "stock").scan().to_arrow().sort_by("item")
    assert found["colour"].to_pylist() == [None, "red"]
    assert found.schema.field("pieces").type == pa.int64()
