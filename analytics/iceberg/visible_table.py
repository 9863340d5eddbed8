"""A table's metadata as readers see it: without snapshots of states that were not committed.

The rows of PostgreSQL decide which states are committed. A snapshot exists before its row, and its
tag is added after it, so the table alone does not show what is committed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.io import FileIO
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRef, SnapshotRefType
from pyiceberg.table.snapshots import Snapshot, SnapshotLogEntry

from analytics.iceberg.committed_states import CommittedStates
from analytics.pipeline.catalogue import UNAVAILABLE, Authority, open_catalogue, state_tag
from foundation.errors import NotFound, Unavailable


class VisibleTable:
    """The committed snapshots of a table or view."""

    def __init__(
        self, location: str, metadata: TableMetadata, io: FileIO, states: dict[int, int]
    ) -> None:
        self.location = location
        self.io = io
        self._metadata = metadata
        self._states = states

    @property
    def snapshots(self) -> list[Snapshot]:
        """The snapshots of committed states, the newest last."""
        visible = set(self._states.values())
        snapshots = [one for one in self._metadata.snapshots if one.snapshot_id in visible]
        return sorted(snapshots, key=lambda one: one.sequence_number or 0)

    def metadata(self, address: Callable[[str], str]) -> TableMetadata:
        """Return the metadata, with all locations replaced by what `address` returns for them."""
        snapshots = [
            one.model_copy(update={"manifest_list": address(one.manifest_list)})
            for one in self.snapshots
        ]
        newest = self._states[max(self._states)]
        tags = {
            state_tag(state): _reference(snapshot, SnapshotRefType.TAG)
            for state, snapshot in self._states.items()
        }
        replaced: dict[str, Any] = {
            "location": address(self._metadata.location),
            "current_snapshot_id": newest,
            "snapshots": snapshots,
            "snapshot_log": [
                SnapshotLogEntry(snapshot_id=one.snapshot_id, timestamp_ms=one.timestamp_ms)
                for one in snapshots
            ],
            "metadata_log": [],
            "refs": {MAIN_BRANCH: _reference(newest, SnapshotRefType.BRANCH), **tags},
            "statistics": [],
            "partition_statistics": [],
        }
        return self._metadata.model_copy(update=replaced)


def open_table(dataset_id: UUID, name: str, states: CommittedStates) -> VisibleTable:
    """Return a table or view, or raise `NotFound`. Reads the catalogue and a file."""
    try:
        table = Authority(open_catalogue(), dataset_id).table(name)
    except NoSuchTableError:
        raise missing(name) from None
    except UNAVAILABLE as error:
        raise Unavailable("The catalogue of the analytics tables does not respond.") from error
    existing = {snapshot.snapshot_id for snapshot in table.snapshots()}
    visible = {
        state: snapshots[name]
        for state, snapshots in states.items()
        if snapshots.get(name) in existing
    }
    if not visible:
        raise missing(name)
    return VisibleTable(table.metadata_location, table.metadata, table.io, visible)


def missing(name: str) -> NotFound:
    return NotFound(f"The table {name[:100]!r} does not exist, or has no committed rows yet.")


def _reference(snapshot: int, kind: SnapshotRefType) -> SnapshotRef:
    return SnapshotRef.model_validate({"snapshot-id": snapshot, "type": kind})
