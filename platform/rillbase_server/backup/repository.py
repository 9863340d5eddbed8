"""The folder that holds backups.

    repository.json            format and identity, not encrypted
    backups/ID/manifest        written last: a backup without it is incomplete
    backups/ID/{secrets,base,node}
    backups/ID/wal/SEGMENT     what PostgreSQL needs to reach the point of the backup
    files/NAME                 files of datasets, which never change, stored once for all backups
    wal/SEGMENT                the continuous archive, if there is one

Everything but `repository.json` is encrypted. Names of files are keyed hashes, so the repository
reveals sizes and times, nothing else.
"""

from __future__ import annotations

import fcntl
import hmac
import json
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from rillbase_server.backup.problems import BackupProblem
from rillbase_server.backup.sealing import (
    KEY_BYTES,
    SealBrokenError,
    opened_seal,
    sealed_file,
)
from rillbase_server.launcher.atomic_file import write_atomically

FORMAT = 1


@dataclass(frozen=True)
class BackedUpFile:
    """A file of a dataset: its path in the installation, its size, and its name here."""

    path: str
    size_bytes: int
    object: str


@dataclass(frozen=True)
class BackupManifest:
    """What a backup contains. All of it is the state at `point_at`."""

    id: str
    started_at: str
    point_at: str
    finished_at: str
    #: The name of the point in PostgreSQL's log.
    restore_point: str
    system_identifier: str
    postgres_version: str
    rillbase_version: str
    wal: tuple[str, ...]
    has_node: bool
    files: tuple[BackedUpFile, ...]
    #: Bytes before compression.
    base_bytes: int
    node_bytes: int

    @classmethod
    def parse(cls, text: bytes) -> BackupManifest:
        content = json.loads(text)
        files = tuple(BackedUpFile(**file) for file in content.pop("files"))
        return cls(**{**content, "wal": tuple(content["wal"]), "files": files})

    @property
    def files_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)


class BackupRepository:
    """A repository whose key is known."""

    def __init__(self, root: Path, key: bytes) -> None:
        self.root, self._key = root, key
        self._identity = self._open_or_create()

    def write(self, name: str) -> AbstractContextManager[BinaryIO]:
        """Write the file `name` of the repository."""
        return sealed_file(self.root / name, name, self._key)

    def read(self, name: str) -> AbstractContextManager[BinaryIO]:
        return opened_seal(self.root / name, name, self._key)

    def has(self, name: str) -> bool:
        return (self.root / name).exists()

    def object_of(self, path: str, size_bytes: int, modified_ns: int) -> str:
        """Return the name under which a dataset's file is stored.

        A file that is still being written gets another name once it is complete.
        """
        content = f"{size_bytes} {modified_ns} {path}".encode()
        return "files/" + hmac.digest(self._key, content, "sha256").hex()

    def backups(self) -> list[BackupManifest]:
        """Return all complete backups, the oldest first."""
        folders = sorted((self.root / "backups").glob("*/manifest"))
        return [self.manifest(folder.parent.name) for folder in folders]

    def manifest(self, backup_id: str) -> BackupManifest:
        with self.read(f"backups/{backup_id}/manifest") as file:
            return BackupManifest.parse(file.read())

    def finish(self, manifest: BackupManifest) -> None:
        """Make a backup complete."""
        with self.write(f"backups/{manifest.id}/manifest") as file:
            file.write(json.dumps(asdict(manifest)).encode())

    def choose(self, backup_id: str | None) -> BackupManifest:
        """Return the named backup, or the newest one."""
        backups = self.backups()
        named = [backup for backup in backups if backup_id in (None, backup.id)]
        if named:
            return named[-1]
        what = f"{self.root} contains no backup" + (f" {backup_id!r}." if backup_id else ".")
        raise BackupProblem(what, "`backup list` shows what it contains.")

    def remove(self, backup_id: str) -> None:
        """Remove a backup. The manifest goes first, so no incomplete one looks complete."""
        folder = self.root / "backups" / backup_id
        (folder / "manifest").unlink(missing_ok=True)
        shutil.rmtree(folder)

    def incomplete(self) -> list[str]:
        """Return the ids of backups that were interrupted."""
        folders = sorted((self.root / "backups").glob("*"))
        return [folder.name for folder in folders if not (folder / "manifest").exists()]

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep out other processes that change backups."""
        with (self.root / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BackupProblem(
                    f"Another process is changing the backups in {self.root}.",
                    "Wait until it has finished.",
                ) from None
            yield

    def names(self, folder: str) -> Sequence[str]:
        """Return the names of the files in a folder, in order."""
        paths = sorted(path for path in (self.root / folder).glob("*") if path.is_file())
        return [path.name for path in paths if not path.name.startswith(".")]

    def _open_or_create(self) -> str:
        marker = self.root / "repository.json"
        try:
            content = json.loads(marker.read_text())
        except FileNotFoundError:
            return self._create(marker)
        except ValueError:
            content = None
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise BackupProblem(
                f"{self.root} is not a repository that this release can read.",
                "Use the release that wrote it, or another folder.",
            )
        return self._checked(str(content.get("id")))

    def _create(self, marker: Path) -> str:
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(self.root.iterdir()):
            raise BackupProblem(
                f"{self.root} contains files, but no repository.", "Choose an empty folder."
            )
        identity = secrets.token_hex(16)
        with self.write("key-check") as file:
            file.write(identity.encode())
        content = json.dumps({"format": FORMAT, "id": identity}) + "\n"
        write_atomically(marker, content, durable=True)
        return identity

    def _checked(self, identity: str) -> str:
        """Check that the key is the one that the repository was created with."""
        try:
            with self.read("key-check") as file:
                stored_identity = file.read().decode()
        except (SealBrokenError, FileNotFoundError):
            stored_identity = ""
        if stored_identity != identity:
            raise BackupProblem(
                f"The key does not open the repository {self.root}.",
                "Use the key file with which its first backup was made.",
            )
        return identity


def load_or_create_key(path: Path, *, may_create: bool) -> tuple[bytes, bool]:
    """Return the key, and whether it was created just now."""
    try:
        text = path.read_text().strip()
    except FileNotFoundError:
        if not may_create:
            raise BackupProblem(
                f"The key file {path} does not exist.",
                "Without the key with which the backup was made, it cannot be restored.",
            ) from None
        key = secrets.token_bytes(KEY_BYTES)
        write_atomically(path, key.hex() + "\n", durable=True)
        return key, True
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise BackupProblem(
            f"{path} is not a key file: it must hold {KEY_BYTES} bytes as hexadecimal digits."
        )
    return key, False
