"""Verification of backups, and removal of old ones."""

from __future__ import annotations

from dataclasses import dataclass

from rillbase_server.backup.problems import BackupProblem
from rillbase_server.backup.repository import BackupManifest, BackupRepository
from rillbase_server.backup.sealing import SealBrokenError

_READ_BYTES = 1024 * 1024


@dataclass(frozen=True)
class Removal:
    """What was removed."""

    backups: tuple[str, ...]
    segments: int
    files: int


def verify_backup(repository: BackupRepository, manifest: BackupManifest) -> int:
    """Read and authenticate everything that a backup consists of; return its size."""
    folder = f"backups/{manifest.id}"
    names = [f"{folder}/secrets", f"{folder}/base"]
    names += [f"{folder}/node"] if manifest.has_node else []
    names += [f"{folder}/wal/{segment}" for segment in manifest.wal]
    names += [file.object for file in manifest.files]
    return sum(_read(repository, name) for name in names)


def prune(repository: BackupRepository, keep: int) -> Removal:
    """Remove all but the newest backups, and what only the others need."""
    with repository.locked():
        backups = repository.backups()
        old, kept = backups[:-keep], backups[-keep:]
        removed = [*repository.incomplete(), *(backup.id for backup in old)]
        for backup_id in removed:
            repository.remove(backup_id)
        if not old:
            return Removal(tuple(removed), 0, 0)
        first = min(backup.wal[0] for backup in kept)
        segments = [f"wal/{name}" for name in repository.names("wal") if name < first]
        needed = {file.object for backup in kept for file in backup.files}
        # What no backup names is kept if the archive may have added it since.
        gone = {file.object for backup in old for file in backup.files} - needed
        for name in (*segments, *gone):
            (repository.root / name).unlink(missing_ok=True)
        return Removal(tuple(removed), len(segments), len(gone))


def _read(repository: BackupRepository, name: str) -> int:
    size = 0
    try:
        with repository.read(name) as file:
            while chunk := file.read(_READ_BYTES):
                size += len(chunk)
    except FileNotFoundError:
        raise BackupProblem(f"{name} is missing from the backup.") from None
    except SealBrokenError as error:
        raise BackupProblem(f"The backup is damaged: {error}.") from None
    return size
