"""The files of datasets, which are added and removed but never changed.

Each is stored once for all backups, as a tar file of one member, so that what belongs to a path is
known even without a manifest.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from rillbase_server.backup.problems import BackupProblem
from rillbase_server.backup.repository import BackedUpFile, BackupRepository


def store_files(repository: BackupRepository, folder: Path) -> tuple[BackedUpFile, ...]:
    """Store the files that are not stored yet; return all that the folder contains."""
    return tuple(
        stored
        for path in sorted(_files(folder))
        if (stored := _store(repository, folder, path)) is not None
    )


def restore_files(repository: BackupRepository, objects: Iterable[str], folder: Path) -> None:
    """Restore files. Of several states of one path, the newest counts."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in objects:
        with repository.read(name) as file, tarfile.open(fileobj=file, mode="r|") as archive:
            for member in archive:
                present = folder / member.name
                if present.exists() and present.stat().st_mtime > member.mtime:
                    continue
                archive.extract(member, folder, filter="data")


def _files(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            yield path


def _store(repository: BackupRepository, folder: Path, path: Path) -> BackedUpFile | None:
    relative = str(path.relative_to(folder))
    try:
        file = path.open("rb")
    except FileNotFoundError:
        # Removed since it was listed: nothing refers to it.
        return None
    with file:
        member = tarfile.TarInfo(relative)
        state = path.stat()
        member.size, member.mtime, member.mode = state.st_size, state.st_mtime, 0o600
        name = repository.object_of(relative, state.st_size, state.st_mtime_ns)
        if not repository.has(name):
            try:
                with (
                    repository.write(name) as target,
                    tarfile.open(fileobj=target, mode="w|") as archive,
                ):
                    archive.addfile(member, file)
            except OSError as error:
                raise BackupProblem(f"{path} could not be stored: {error}") from error
    return BackedUpFile(relative, state.st_size, name)
