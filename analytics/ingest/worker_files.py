"""The open files of a worker: the body, and one output file for each possible segment.

The worker cannot open any other file. Its output is synced here and moved to the dataset's storage;
unused output files are removed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from analytics.facts import DatasetFacts
from analytics.ingest.segments import FOLDER, UploadSegment
from analytics.rows.durable import local_folder, storing, sync
from analytics.table_definitions import read_definition

if TYPE_CHECKING:
    from analytics.rows.file_store import StoredPath

_PRIVATE = 0o600


@dataclass(slots=True)
class _Output:
    """A file that becomes a segment if the worker writes rows to it."""

    table: str
    id_key: str
    local_path: Path
    stored: StoredPath
    descriptor: int
    is_stored: bool = False

    def store(self, rows: int) -> UploadSegment:
        """Sync the file and return it as a segment."""
        size = self.local_path.stat().st_size
        self.is_stored = True
        if isinstance(self.stored, Path):
            sync(self.local_path)
        else:
            self.stored.put_file(self.local_path)
        return UploadSegment(self.table, f"{FOLDER}/{self.stored.name}", rows, size, self.id_key)

    def close(self, *, keep: bool) -> None:
        os.close(self.descriptor)
        is_file = isinstance(self.stored, Path)
        if not (is_file and keep):
            self.local_path.unlink(missing_ok=True)
        if not is_file and self.is_stored and not keep:
            self.stored.unlink(missing_ok=True)


@dataclass(slots=True)
class WorkerFiles:
    """The files of one body. Opened and closed once."""

    body: Path
    dataset: DatasetFacts
    outputs: list[_Output] = field(default_factory=list)
    _body: int = -1

    def open(self) -> None:
        """Open all files that the worker may need."""
        definition = read_definition(self.dataset.definition)
        with storing():
            self._body = os.open(self.body, os.O_RDONLY)
            for table in definition["tables"]:
                self._open_output(table, "")
            for id_key in definition["id_keys"]:
                self._open_output("", id_key)

    @property
    def descriptors(self) -> list[int]:
        return [self._body, *(output.descriptor for output in self.outputs)]

    def store(self, rows: Sequence[int]) -> list[UploadSegment]:
        """Return the durable segments of the outputs that have rows."""
        written = [(o, count) for o, count in zip(self.outputs, rows, strict=True) if count]
        with storing():
            segments = [output.store(count) for output, count in written]
            for folder in {output.local_path.parent for output, _ in written}:
                sync(folder)
        return segments

    def close(self, *, keep: bool) -> None:
        """Close all files; remove them unless they were stored and `keep` is set."""
        if self._body >= 0:
            os.close(self._body)
        for output in self.outputs:
            output.close(keep=keep and output.is_stored)

    def _open_output(self, table: str, id_key: str) -> None:
        stored = self.dataset.folder / FOLDER / f"{uuid4().hex}.arrow"
        local_path = stored if isinstance(stored, Path) else local_folder() / stored.name
        local_path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(local_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE)
        self.outputs.append(_Output(table, id_key, local_path, stored, descriptor))
