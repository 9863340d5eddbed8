"""GET files of the authority as a reader's S3 client does it, with ranges of bytes.

Only files of committed states that are retained can be read. Other paths do not exist, whatever is
in the dataset's folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from uuid import UUID

from analytics import facts
from analytics.api.dataset_access import in_scope, in_thread
from analytics.facts import READ
from analytics.iceberg.committed_states import CommittedStates, committed_states
from analytics.iceberg.file_locations import FileLocations
from analytics.iceberg.manifests import manifest, manifest_list
from analytics.iceberg.visible_table import open_table
from analytics.models import FileStage, StoredFile
from data_plane.calls import Call
from data_plane.http import CallResponse
from foundation.errors import NotFound

_BINARY = "application/octet-stream"
_PART_BYTES = 1024 * 1024
#: Several ranges are allowed to be ignored, as are other units.
_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")
_ABSENT = "The file does not exist, or no retained state has it."


async def rows(call: Call) -> CallResponse:
    """GET a data file."""
    dataset_id, folder = _dataset(call)
    path = f"{FileStage.AUTHORITY}/{call.parameters['file']}"

    def is_referenced() -> bool:
        files = StoredFile.objects.filter(dataset_id=dataset_id, stage=FileStage.AUTHORITY)
        return files.filter(path=path).exists()

    if not await in_scope(call, is_referenced):
        raise NotFound(_ABSENT)
    size = await in_thread(lambda: _size(folder, path))
    # Files never change.
    return _in_part(call, path.encode(), size, lambda part: _read(folder / path, part))


async def metadata(call: Call) -> CallResponse:
    """GET a manifest list, a manifest or the table's metadata, with the reader's locations."""
    dataset_id, folder = _dataset(call)
    table, file = call.parameters["table"], call.parameters["file"]
    states = await in_scope(call, lambda: committed_states(dataset_id))
    path = f"iceberg/{table}/metadata/{file}"

    def rewrite() -> bytes:
        _size(folder, path)
        return _rewritten(dataset_id, table, path, states)

    content = await in_thread(rewrite)

    async def read(part: _Part) -> AsyncIterator[bytes]:
        yield content[part.begin : part.end]

    return _in_part(call, content, len(content), read)


def _dataset(call: Call) -> tuple[UUID, Path]:
    """Return the dataset in the path, which the caller's credentials are for, and its folder."""
    facts.allow(call.principal, READ)
    dataset_id = UUID(call.parameters["dataset"])
    folder = FileLocations(dataset_id).folder
    if folder is None:
        raise NotFound("The files are in an object store.")
    return dataset_id, folder


def _rewritten(dataset_id: UUID, table: str, path: str, states: CommittedStates) -> bytes:
    visible, locations = open_table(dataset_id, table, states), FileLocations(dataset_id)
    location = locations.own(path)
    if location == visible.location:
        return visible.metadata(locations.public).model_dump_json().encode()
    try:
        for snapshot in visible.snapshots:
            if snapshot.manifest_list == location:
                return manifest_list(visible.io, location, locations).content
        for snapshot in visible.snapshots:
            if location in manifest_list(visible.io, snapshot.manifest_list, locations).named:
                return manifest(visible.io, location, locations).content
    except FileNotFoundError:
        # The state was removed in the meantime.
        raise NotFound(_ABSENT) from None
    raise NotFound(_ABSENT)


def _size(folder: Path, path: str) -> int:
    """Return the size of a file, or raise `NotFound`, also for links and what is not a file."""
    file = folder / path
    try:
        if file.resolve(strict=True) == folder.resolve() / path and file.is_file():
            return file.stat().st_size
    except OSError:
        pass
    raise NotFound(_ABSENT)


@dataclass(frozen=True, slots=True)
class _Part:
    """A range of bytes."""

    begin: int
    end: int


def _in_part(
    call: Call, identity: bytes, size: int, read: Callable[[_Part], AsyncIterator[bytes]]
) -> CallResponse:
    """Respond with the range of a file that the request names, or with all of it.

    Files with the same `identity` are equal.
    """
    headers = {
        "Accept-Ranges": "bytes",
        "ETag": f'"{sha256(identity).hexdigest()[:32]}"',
    }
    match = _RANGE.fullmatch(call.head.headers.get("Range", ""))
    part = _Part(0, size)
    if match is not None and any(match.groups()):
        part = _part_of(size, *match.groups())
        if part.begin >= part.end:
            return CallResponse(416, headers={"Content-Range": f"bytes */{size}"})
        headers["Content-Range"] = f"bytes {part.begin}-{part.end - 1}/{size}"
    headers["Content-Length"] = str(part.end - part.begin)
    status = 206 if "Content-Range" in headers else 200
    return CallResponse(status, read(part), headers, _BINARY)


def _part_of(size: int, first: str, last: str) -> _Part:
    if not first:
        return _Part(max(size - int(last), 0), size)
    return _Part(int(first), min(int(last) + 1, size) if last else size)


async def _read(path: Path, part: _Part) -> AsyncIterator[bytes]:
    """Yield a range of a file. A part of it is in memory at a time."""
    descriptor = await in_thread(lambda: os.open(path, os.O_RDONLY | os.O_NOFOLLOW))
    try:
        position = part.begin
        while position < part.end:
            count = min(_PART_BYTES, part.end - position)
            content = await in_thread(
                lambda count=count, position=position: os.pread(  # type: ignore[misc]
                    descriptor, count, position
                )
            )
            if not content:
                raise EOFError(f"{path} is shorter than it was")
            position += len(content)
            yield content
    finally:
        os.close(descriptor)
