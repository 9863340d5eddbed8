"""The Iceberg REST catalogue as its clients see it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import duckdb_extension_avro
import duckdb_extension_iceberg
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import ForbiddenError, NoSuchNamespaceError, NoSuchTableError

from analytics.iceberg.manifests import RewrittenFile, RewrittenFiles
from tests.analytics import pipeline_steps
from tests.analytics.dataset_client import make_dataset
from tests.analytics.test_iceberg import COLUMNS, fill, table_of
from tests.analytics.test_object_store import store  # noqa: F401 -- a fixture
from tests.caller import Caller, with_key
from tests.make import make_key, make_tenant

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from tests.analytics.dataset_client import DatasetClient
    from tests.object_store import Store

# The client warns that its own fallback for OAuth will be removed.
pytestmark = pytest.mark.filterwarnings("ignore:Deprecated in 0.8.0:DeprecationWarning")


def catalogue_of(shop: DatasetClient, key: str | None = None) -> RestCatalog:
    uri = f"{shop.caller.base}/v1/iceberg"
    return RestCatalog("rillbase", uri=uri, token=key or shop.account.admin_key)


def address(shop: DatasetClient, path: str = "") -> str:
    return f"/v1/iceberg/v1/{shop.account.slug}/namespaces{path}"


def rows_of(table: Table, **scan: Any) -> list[dict[str, Any]]:
    result = table.scan(selected_fields=tuple(COLUMNS), **scan).to_arrow().sort_by("id")
    rows: list[dict[str, Any]] = result.to_pylist()
    return rows


def refused(caller: Caller, method: str, path: str, status: int, kind: str) -> None:
    """Assert that the response is an error of the Iceberg specification."""
    answer = caller.call(method, path)
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert (error["code"], error["type"]) == (status, kind)
    assert error["message"]


def test_pyiceberg_lists_loads_and_reads_tables_at_each_state(shop: DatasetClient) -> None:
    fill(shop)
    catalogue = catalogue_of(shop)
    assert catalogue.list_namespaces() == [("shop",)]
    assert catalogue.list_namespaces("shop") == []
    assert catalogue.namespace_exists("shop")
    assert not catalogue.namespace_exists("no-such")
    assert catalogue.load_namespace_properties("shop") == {}
    assert catalogue.list_tables("shop") == [("shop", "orders"), ("shop", "orders__by_customer")]
    assert catalogue.table_exists(("shop", "orders"))
    assert not catalogue.table_exists(("shop", "stock"))
    for name in ("orders", "orders__by_customer"):
        table = catalogue.load_table(("shop", name))
        assert table.refs().keys() == {"main", "state-1", "state-2"}
        assert rows_of(table) == shop.rows("orders", columns=COLUMNS)
        snapshot = table.snapshot_by_name("state-1")
        assert snapshot is not None
        earlier = shop.rows("orders", columns=COLUMNS, state=1)
        assert rows_of(table, snapshot_id=snapshot.snapshot_id) == earlier


def test_duckdb_reads_what_the_catalogue_names(shop: DatasetClient) -> None:
    import duckdb_extension_httpfs

    fill(shop)
    with duckdb.connect() as connection:
        connection.execute("SET autoinstall_known_extensions = false")
        for package in (duckdb_extension_httpfs, duckdb_extension_avro, duckdb_extension_iceberg):
            (extension,) = Path(next(iter(package.__path__))).rglob("*.duckdb_extension")
            connection.execute(f"LOAD '{extension}'")
        connection.execute(
            f"ATTACH '' AS rillbase (TYPE iceberg, ENDPOINT '{shop.caller.base}/v1/iceberg', "
            f"TOKEN '{shop.account.admin_key}')"
        )
        for name in ("orders", "orders__by_customer"):
            snapshot = catalogue_of(shop).load_table(("shop", name)).snapshot_by_name("state-1")
            assert snapshot is not None
            for version, state in (("", 2), (f"AT (VERSION => {snapshot.snapshot_id})", 1)):
                result = connection.execute(
                    f"SELECT id, customer, count FROM rillbase.shop.{name} {version} ORDER BY id"
                )
                rows = result.to_arrow_table().to_pylist()
                assert rows == shop.rows("orders", columns=COLUMNS, state=state)
        with pytest.raises(duckdb.Error):
            connection.execute("DELETE FROM rillbase.shop.orders")


def test_a_dataset_has_no_tables_before_its_first_committed_state(shop: DatasetClient) -> None:
    shop.insert("orders", {"id": 1})
    catalogue = catalogue_of(shop)
    assert catalogue.list_tables("shop") == []
    with pytest.raises(NoSuchTableError):
        catalogue.load_table(("shop", "orders"))
    with pytest.raises(NoSuchNamespaceError):
        catalogue.list_tables("no-such")


def test_a_snapshot_of_a_state_that_was_not_committed_is_not_visible(shop: DatasetClient) -> None:
    from analytics.models import Dataset, Run
    from analytics.pipeline.catalogue import FileReplacement
    from analytics.schema import tables_of

    fill(shop)
    committed = catalogue_of(shop).load_table(("shop", "orders")).metadata
    row = Dataset.unscoped.using("relay").get(pk=shop.id)
    run = Run.unscoped.using("relay").get(dataset=row, stage="authority", superseded_at=None)
    orders = tables_of(row.definition)["orders"]
    change = FileReplacement(orders, orders.primary, data_files(shop), [])
    pipeline_steps.authority_of(shop).change([change], run.snapshots)
    own = table_of(shop, "orders").metadata
    assert own.current_snapshot_id != committed.current_snapshot_id
    table = catalogue_of(shop).load_table(("shop", "orders"))
    shown = table.metadata
    assert shown.current_snapshot_id == committed.current_snapshot_id
    assert str(own.current_snapshot_id) not in shown.model_dump_json()
    assert shown.metadata_log == []
    assert rows_of(table) == shop.rows("orders", columns=COLUMNS, freshness="any")


def data_files(shop: DatasetClient) -> list[str]:
    """Return the paths of the data files of the orders in the authority."""
    from analytics.models import StoredFile

    files = StoredFile.unscoped.using("relay").filter(
        dataset_id=shop.id, stage="authority", table="orders", view="", until=None
    )
    return list(files.values_list("path", flat=True))


def test_a_committed_state_is_visible_before_it_has_its_tag(shop: DatasetClient) -> None:
    fill(shop)
    table_of(shop, "orders").manage_snapshots().remove_tag("state-2").commit()
    shown = catalogue_of(shop).load_table(("shop", "orders"))
    assert shown.refs().keys() == {"main", "state-1", "state-2"}
    assert rows_of(shown) == shop.rows("orders", columns=COLUMNS)


def test_keys_reach_only_the_datasets_of_their_tenant(shop: DatasetClient, server: str) -> None:
    fill(shop)
    other = make_dataset(server, name="theirs")
    assert catalogue_of(other).list_namespaces() == [("theirs",)]
    with pytest.raises(NoSuchTableError):
        catalogue_of(other).load_table(("shop", "orders"))
    refused(other.caller, "GET", address(shop), 404, "NoSuchNamespaceException")
    refused(
        other.caller,
        "GET",
        address(shop, "/shop/tables/orders"),
        404,
        "NoSuchTableException",
    )
    with pytest.raises(ForbiddenError):
        catalogue_of(shop, make_key(shop.account.tenant, scopes=["analytics:write"]))
    refused(with_key(server, "rbk_no"), "GET", "/v1/iceberg/v1/config", 401, NOT_AUTHORIZED)
    refused(Caller(server), "GET", address(shop), 401, NOT_AUTHORIZED)


NOT_AUTHORIZED = "NotAuthorizedException"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", ""),
        ("DELETE", "/shop"),
        ("POST", "/shop/properties"),
        ("POST", "/shop/tables"),
        ("POST", "/shop/register"),
        ("POST", "/shop/tables/orders"),
        ("DELETE", "/shop/tables/orders"),
        ("POST", "/shop/tables/orders/metrics"),
        ("POST", "/shop/views"),
        ("POST", "/../tables/rename"),
        ("POST", "/../transactions/commit"),
        ("POST", "/../../oauth/tokens"),
    ],
)
def test_writes_are_refused_in_the_form_of_the_specification(
    shop: DatasetClient, method: str, path: str
) -> None:
    refused(shop.caller, method, address(shop, path), 405, "UnsupportedOperationException")


def test_lists_have_pages(shop: DatasetClient, server: str) -> None:
    for name in ("a-shop", "b-shop"):
        make_dataset(server, account=shop.account, name=name)
    names: list[str] = []
    token = ""
    while True:
        path = f"{address(shop)}?pageSize=1&pageToken={token}"
        page = shop.caller.get(path).json()
        assert len(page["namespaces"]) == 1
        names += page["namespaces"][0]
        token = page.get("next-page-token", "")
        if not token:
            break
        assert len(names) < 4
    assert names == ["a-shop", "b-shop", "shop"]
    assert len(shop.caller.get(address(shop)).json()["namespaces"]) == 3
    for parameters in ("pageToken=x", "pageToken=&pageSize=0", "pageToken=&pageSize=1e9"):
        bad = f"{address(shop)}?{parameters}"
        refused(shop.caller, "GET", bad, 400, "BadRequestException")


def test_tables_in_an_object_store_have_its_own_locations(
    server: str,
    store: Store,  # noqa: F811 -- the fixture
) -> None:
    shop = make_dataset(server)
    shop.insert("orders", {"id": 1, "customer": "a", "count": 1})
    pipeline_steps.drain(shop)
    answer = shop.caller.get(address(shop, "/shop/tables/orders")).json()
    assert answer["config"] == {}
    assert answer["metadata"]["location"].startswith(f"s3://rows/installation/{shop.id}/")
    catalogue = catalogue_of(shop)
    catalogue.properties |= {
        "s3.endpoint": store.url,
        "s3.access-key-id": "somebody",
        "s3.secret-access-key": "anything",
        "s3.region": "here-1",
    }
    rows = rows_of(catalogue.load_table(("shop", "orders")))
    assert rows == shop.rows("orders", columns=COLUMNS)


def test_rewritten_files_are_evicted_the_least_recently_used_first() -> None:
    files, rewritten = RewrittenFiles(max_bytes=30), []

    def rewrite(name: str, size: int) -> Callable[[], RewrittenFile]:
        def run() -> RewrittenFile:
            rewritten.append(name)
            return RewrittenFile(bytes(size), frozenset())

        return run

    for name in ("a", "b", "a", "c", "a", "b"):
        files.get(name, rewrite(name, 14))
    assert rewritten == ["a", "b", "c", "b"]
    assert len(files.get("large", rewrite("large", 100)).content) == 100
    assert files._bytes == 0
    assert files._files == {}


def test_every_rewriting_of_a_file_has_the_same_bytes(shop: DatasetClient) -> None:
    from analytics.iceberg import manifests
    from analytics.iceberg.file_locations import FileLocations

    fill(shop)
    table, locations = table_of(shop, "orders"), FileLocations(shop.id)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    first = manifests.manifest_list(table.io, snapshot.manifest_list, locations)
    manifests._cache._files.clear()
    assert manifests.manifest_list(table.io, snapshot.manifest_list, locations) == first
    assert b"file:" not in first.content


def test_a_tenant_without_datasets_has_no_namespaces(server: str) -> None:
    account = make_tenant()
    uri = f"{server}/v1/iceberg"
    assert RestCatalog("empty", uri=uri, token=account.admin_key).list_namespaces() == []
