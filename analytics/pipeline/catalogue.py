"""The authority as Iceberg tables, in a PostgreSQL catalogue that other readers can use too.

A state is committed by the row of its run, which names a snapshot for each table. A snapshot is
created first and tagged `state-N` once the row exists, so only committed states have tags. If the
process dies in between, its successor rolls back snapshots that no row names, and adds missing
tags.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
from pyiceberg.io.pyarrow import parquet_file_to_data_file
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table as IcebergTable
from pyiceberg.typedef import Identifier
from sqlalchemy.exc import DBAPIError

from analytics.locations import folder_of, namespace_of
from analytics.pipeline.tasks import authority_schema
from analytics.rows.objects import endpoint
from analytics.schema import AnalyticsTable, TableView
from foundation.database_roles import DatabaseRole
from foundation.environment import environment

NAME = "rillbase"
#: Errors that the catalogue raises while PostgreSQL is unavailable.
UNAVAILABLE = DBAPIError
#: Opening it twice would create two connection pools.
_opening = threading.Lock()
_KEPT_METADATA = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "3",
}


@dataclass(frozen=True, slots=True)
class FileReplacement:
    """Files of one view that are replaced by others. Paths are below the dataset's folder."""

    table: AnalyticsTable
    view: TableView
    removed: Sequence[str]
    added: Sequence[str]


def table_name(table: str, view: str) -> str:
    """Return a view's table name in its namespace."""
    return f"{table}__{view}" if view else table


def state_tag(state: int) -> str:
    return f"state-{state}"


def open_catalogue() -> SqlCatalog:
    """Return the catalogue of this installation, which any thread may use."""
    with _opening:
        return _catalogue()


@lru_cache(maxsize=1)
def _catalogue() -> SqlCatalog:
    url = (
        environment()
        .role_url(DatabaseRole.RELAY)
        .replace("postgresql://", "postgresql+psycopg://", 1)
    )
    properties = {"uri": url, "init_catalog_tables": "false", "pool_pre_ping": "true"}
    store = {"s3.endpoint": endpoint(), "s3.region": os.environ.get("AWS_REGION")}
    configured = {name: value for name, value in store.items() if value}
    return SqlCatalog(NAME, **properties, **configured)


class ForeignFile(Exception):
    """A table's metadata names a file that is not in its dataset's folder."""


class Authority:
    """One dataset's tables in the catalogue."""

    def __init__(self, catalogue: SqlCatalog, dataset_id: UUID) -> None:
        self._catalogue = catalogue
        self._namespace = namespace_of(dataset_id)
        self._folder = folder_of(dataset_id)

    def change(
        self, changes: Sequence[FileReplacement], before: Mapping[str, int]
    ) -> dict[str, int]:
        """Create a snapshot of each view that changes. Return the snapshot of each view.

        `before` are the snapshots of the state being changed: any later ones were never committed,
        and are rolled back.
        """
        self._catalogue.create_namespace_if_not_exists(self._namespace)
        snapshots = dict(before)
        for change in changes:
            name = table_name(change.table.name, change.view.name)
            self._roll_back(name, before.get(name))
            table = self._table(name, authority_schema(change.table, change.view))
            snapshots[name] = self._replace(table, change)
        return snapshots

    def tag(self, state: int, snapshots: Mapping[str, int]) -> None:
        """Tag a state's snapshots. Idempotent."""
        for name, snapshot in snapshots.items():
            table = self._load((self._namespace, name))
            if state_tag(state) not in table.refs():
                table.manage_snapshots().create_tag(snapshot, state_tag(state)).commit()

    def forget(self, state: int, snapshots: Mapping[str, int]) -> None:
        """Remove a state's tag, and the snapshots that no tag and no branch references."""
        for name in snapshots:
            try:
                table = self._load((self._namespace, name))
            except NoSuchTableError:
                continue
            if state_tag(state) in table.refs():
                table.manage_snapshots().remove_tag(state_tag(state)).commit()
                table = table.refresh()
            referenced = {ref.snapshot_id for ref in table.refs().values()}
            unreferenced = [
                s.snapshot_id for s in table.snapshots() if s.snapshot_id not in referenced
            ]
            if unreferenced:
                table.maintenance.expire_snapshots().by_ids(unreferenced).commit()

    def metadata_files(self) -> set[str]:
        """Return the locations of the metadata files of the tables, for all snapshots."""
        locations: set[str] = set()
        for identifier in self._tables():
            table = self._load(identifier)
            locations.add(table.metadata_location)
            locations |= {entry.metadata_file for entry in table.metadata.metadata_log}
            for snapshot in table.snapshots():
                locations.add(snapshot.manifest_list)
                locations |= {manifest.manifest_path for manifest in snapshot.manifests(table.io)}
        return locations

    def table(self, name: str) -> IcebergTable:
        """Return the table of a view as it is now, or raise `NoSuchTableError`."""
        return self._load((self._namespace, name))

    def _load(self, identifier: Identifier) -> IcebergTable:
        return self._check_files(self._catalogue.load_table(identifier))

    def _check_files(self, table: IcebergTable) -> IcebergTable:
        """Return a table, or raise `ForeignFile` if it names a file outside its folder.

        Commits write below the table's location and remove files that the metadata log names, so
        both are checked. The expected folder comes from the metadata location that PostgreSQL
        stores.
        """
        root, identity, _ = table.metadata_location.partition(f"/{self._folder.name}/")
        prefix = root + identity
        files = [table.metadata_location, f"{table.location()}/"]
        files += [entry.metadata_file for entry in table.metadata.metadata_log]
        files += [snapshot.manifest_list for snapshot in table.snapshots()]
        for file in files:
            if not identity or not file.startswith(prefix) or ".." in file.split("/"):
                raise ForeignFile(f"{table.name()} names a file outside its folder: {file[:400]}")
        return table

    def _tables(self) -> list[Identifier]:
        try:
            return self._catalogue.list_tables(self._namespace)
        except NoSuchNamespaceError:
            return []

    def _roll_back(self, name: str, snapshot: int | None) -> None:
        """Roll back to a snapshot; drop the table if it did not exist before."""
        try:
            table = self._load((self._namespace, name))
        except NoSuchTableError:
            return
        current = table.current_snapshot()
        if current is None or current.snapshot_id == snapshot:
            return
        if snapshot is None:
            self._catalogue.drop_table((self._namespace, name))
        else:
            table.manage_snapshots().set_current_snapshot(snapshot_id=snapshot).commit()

    def _table(self, name: str, schema: pa.Schema) -> IcebergTable:
        """Return a table with all columns of a schema, creating what is missing."""
        identifier = (self._namespace, name)
        table = self._catalogue.create_table_if_not_exists(
            identifier,
            schema=schema,
            location=(self._folder / "iceberg" / name).as_uri(),
            properties=_KEPT_METADATA,
        )
        self._check_files(table)
        if len(table.schema().fields) < len(schema):
            with table.update_schema() as update:
                update.union_by_name(schema)
            table = table.refresh()
        return table

    def _replace(self, table: IcebergTable, change: FileReplacement) -> int:
        with (
            table.transaction() as transaction,
            transaction.update_snapshot().overwrite() as snapshot,
        ):
            for path in change.removed:
                snapshot.delete_data_file(self._data_file(table, path))
            for path in change.added:
                snapshot.append_data_file(self._data_file(table, path))
        current = table.refresh().current_snapshot()
        if current is None:
            raise RuntimeError(f"{table.name()} has no snapshot after a commit")
        return current.snapshot_id

    def _data_file(self, table: IcebergTable, path: str) -> DataFile:
        location = (self._folder / path).as_uri()
        data_file = parquet_file_to_data_file(table.io, table.metadata, location)
        # The library passes the id to manifests, but does not set it on the file.
        data_file.spec_id = table.metadata.default_spec_id
        return data_file
