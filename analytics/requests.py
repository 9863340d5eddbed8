"""Requests and answers of large queries, as files shared by web server and pipeline.

`scans/DATASET/ID.request` has tasks, one line of JSON each; `ID.answer` has their results. Removing
a request cancels it. Files are written atomically. The requester removes them; leftovers of a crash
are removed after a day.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from analytics.rows.file_store import StoredPath, files_in, read_text, write_text

_FOLDER, _REQUEST, _ANSWER = "scans", ".request", ".answer"


@dataclass(frozen=True, slots=True)
class DatasetRequest:
    """A request for a dataset."""

    folder: StoredPath
    name: str

    @property
    def path(self) -> StoredPath:
        return self.folder / f"{self.name}{_REQUEST}"

    @property
    def answer_path(self) -> StoredPath:
        return self.folder / f"{self.name}{_ANSWER}"

    @property
    def dataset(self) -> str:
        return self.folder.name

    @property
    def is_pending(self) -> bool:
        try:
            read_text(self.path)
        except FileNotFoundError:
            return False
        return True

    def delete(self) -> None:
        self.path.unlink(missing_ok=True)


def folder_for(root: StoredPath, dataset_id: UUID) -> StoredPath:
    """Return the folder of a dataset's requests."""
    return root / _FOLDER / str(dataset_id)


def submit(folder: StoredPath, name: str, tasks: Sequence[str]) -> DatasetRequest:
    """Write a request."""
    request = DatasetRequest(folder, name)
    write_text(request.path, _lines(tasks))
    return request


def pending(root: StoredPath) -> list[tuple[DatasetRequest, float]]:
    """Return all requests, oldest first, and when each was written."""
    requests = [
        (DatasetRequest(path.parent, path.name.removesuffix(_REQUEST)), written_s)
        for path, written_s in files_in(root / _FOLDER)
        if path.name.endswith(_REQUEST)
    ]
    return sorted(requests, key=lambda pair: pair[0].name)


def tasks_of(request: DatasetRequest) -> list[str]:
    return read_text(request.path).splitlines()


def answer(request: DatasetRequest, lines: Sequence[str]) -> None:
    """Answer a request."""
    write_text(request.answer_path, _lines(lines))


def answered(request: DatasetRequest) -> list[str] | None:
    """Return the lines of the answer, and remove it; None if there is none yet."""
    try:
        lines = read_text(request.answer_path).splitlines()
    except FileNotFoundError:
        return None
    request.answer_path.unlink(missing_ok=True)
    return lines


def _lines(texts: Sequence[str]) -> str:
    return "\n".join(texts) + "\n"
