"""The Iceberg REST catalogue as its clients see it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import duckdb_extension_avro
import duckdb_extension_httpfs
import duckdb_extension_iceberg
import pytest
import requests
from pyiceberg.catalog.rest import RestCatalog

from tests.analytics import pipeline_steps
from tests.analytics.test_iceberg import COLUMNS, fill

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from tests.analytics.dataset_client import DatasetClient

# The client warns that its own fallback for OAuth will be removed.
pytestmark = pytest.mark.filterwarnings("ignore:Deprecated in 0.8.0:DeprecationWarning")


def catalogue_of(shop: DatasetClient, key: str | None = None) -> RestCatalog:
    return RestCatalog(
        "rillbase", uri=f"{shop.caller.base}/v1/iceberg", token=key or shop.account.admin_key
    )


def rows_of(table: Table, **scan: Any) -> list[dict[str, Any]]:
    result = table.scan(selected_fields=tuple(COLUMNS), **scan).to_arrow().sort_by("id")
    rows: list[dict[str, Any]] = result.to_pylist()
    return rows


def test_pyiceberg_lists_loads_and_reads_tables_at_each_state(shop: DatasetClient) -> None:
    fill(shop)
    catalogue = catalogue_of(shop)
    assert catalogue.list_namespaces() == [("shop",)]
    assert catalogue.list_tables("shop") == [("shop", "orders"), ("shop", "orders__by_customer")]
    for name in ("orders", "orders__by_customer"):
        table = catalogue.load_table(("shop", name))
        assert table.refs().keys() == {"main", "state-1", "state-2"}
        assert rows_of(table) == shop.rows("orders", columns=COLUMNS)
        snapshot = table.snapshot_by_name("state-1")
        assert snapshot is not None
        earlier = shop.rows("orders", columns=COLUMNS, state=1)
        assert rows_of(table, snapshot_id=snapshot.snapshot_id) == earlier


def test_duckdb_attaches_the_catalogue(shop: DatasetClient) -> None:
    fill(shop)
    with duckdb.connect() as connection:
        connection.execute("SET autoinstall_known_extensions = false")
        for package in (duckdb_extension_httpfs, duckdb_extension_avro, duckdb_extension_iceberg):
            (extension,) = Path(next(iter(package.__path__))).rglob("*.duckdb_extension")
            connection.execute(f"LOAD '{extension}'")
        connection.execute(
            f"ATTACH 'shops' AS rillbase (TYPE iceberg, ENDPOINT '{shop.caller.base}/v1/iceberg', "
            f"TOKEN '{shop.account.admin_key}')"
        )
        statement = "SELECT id, customer, count FROM rillbase.shop.orders ORDER BY id"
        rows = connection.execute(statement).to_arrow_table().to_pylist()
    assert rows == shop.rows("orders", columns=COLUMNS)
