"""Creates a backup of a running installation."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import redis

from rillbase_server.backup.consistent_point import ConsistentPoint, take_point
from rillbase_server.backup.files import store_files
from rillbase_server.backup.installation import RunningInstallation
from rillbase_server.backup.postgres import (
    one_row,
    read_segment,
    retained_wal,
    segments,
    write_base_backup,
)
from rillbase_server.backup.problems import BackupProblem
from rillbase_server.backup.repository import BackedUpFile, BackupManifest, BackupRepository
from rillbase_server.version import VERSION

NODE_TIMEOUT_S = 60.0
Report = Callable[[str], None]


@dataclass(frozen=True)
class _NewBackup:
    """A backup that is being made."""

    id: str
    started: datetime

    @classmethod
    def begin(cls) -> _NewBackup:
        now = datetime.now(UTC)
        return cls(now.strftime("%Y%m%dT%H%M%SZ"), now)

    @property
    def folder(self) -> str:
        return f"backups/{self.id}"

    @property
    def name(self) -> str:
        """The name by which the servers know it."""
        return f"rillbase_backup_{self.id.lower()}"


def create_backup(
    installation: RunningInstallation, repository: BackupRepository, report: Report
) -> BackupManifest:
    """Back up everything; return the manifest once the backup is complete."""
    with repository.locked():
        for interrupted in repository.incomplete():
            repository.remove(interrupted)
        new = _NewBackup.begin()
        try:
            with psycopg.connect(installation.database_url, autocommit=True) as database:
                return _create(new, installation, repository, database, report)
        except psycopg.Error as error:
            raise BackupProblem(f"PostgreSQL reported an error: {error}") from error
        except redis.RedisError as error:
            raise BackupProblem(f"The storage node reported an error: {error}") from error


def _create(
    new: _NewBackup,
    installation: RunningInstallation,
    repository: BackupRepository,
    database: psycopg.Connection,
    report: Report,
) -> BackupManifest:
    with repository.write(f"{new.folder}/secrets") as secrets:
        secrets.write(installation.directory.secrets.read_bytes())
    with retained_wal(database, new.name) as first:
        report("PostgreSQL: base backup")
        with repository.write(f"{new.folder}/base") as base:
            base_bytes = write_base_backup(installation.database_url, new.name, base)
        point = _take_point(new, installation, database)
        report(f"Consistent point {point.at:%H:%M:%S}; writes waited {point.held_s * 1000:.0f} ms")
        node_bytes = 0
        if point.checkpoint:
            # Before anything else can fail: it retains files that the node has replaced.
            report("Storage node: checkpoint")
            node_bytes = _store_checkpoint(repository, new, Path(point.checkpoint))
        wal = segments(database, first, point.segment)
        for segment in wal:
            with repository.write(f"{new.folder}/wal/{segment}") as file:
                file.write(read_segment(database, segment))
    files: tuple[BackedUpFile, ...] = ()
    if installation.analytics:
        report("Files of datasets")
        files = store_files(repository, installation.analytics)
    manifest = BackupManifest(
        id=new.id,
        started_at=new.started.isoformat(timespec="milliseconds"),
        point_at=point.at.astimezone(UTC).isoformat(timespec="milliseconds"),
        finished_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        restore_point=point.restore_point,
        system_identifier=str(
            one_row(database, "SELECT system_identifier FROM pg_control_system()")[0]
        ),
        postgres_version=str(one_row(database, "SHOW server_version")[0]),
        rillbase_version=VERSION,
        wal=tuple(wal),
        has_node=point.checkpoint is not None,
        files=files,
        base_bytes=base_bytes,
        node_bytes=node_bytes,
    )
    repository.finish(manifest)
    return manifest


def _take_point(
    new: _NewBackup, installation: RunningInstallation, database: psycopg.Connection
) -> ConsistentPoint:
    if installation.storage_url is None:
        return take_point(database, new.name, None)
    with redis.Redis.from_url(installation.storage_url, socket_timeout=NODE_TIMEOUT_S) as node:

        def checkpoint() -> str:
            path = node.execute_command("RB.CHECKPOINT", new.name.replace("_", "-"))
            return path.decode() if isinstance(path, bytes) else str(path)

        return take_point(database, new.name, checkpoint)


def _store_checkpoint(repository: BackupRepository, new: _NewBackup, checkpoint: Path) -> int:
    """Store the checkpoint, and remove it from the node."""
    if not checkpoint.is_dir():
        raise BackupProblem(
            f"The storage node's checkpoint {checkpoint} cannot be read here.",
            "Run this on the machine of the storage node, as a user that may read its folder.",
        )
    try:
        with (
            repository.write(f"{new.folder}/node") as target,
            tarfile.open(fileobj=target, mode="w|") as archive,
        ):
            archive.add(checkpoint, arcname=".")
            return sum(path.stat().st_size for path in checkpoint.rglob("*") if path.is_file())
    finally:
        shutil.rmtree(checkpoint, ignore_errors=True)
