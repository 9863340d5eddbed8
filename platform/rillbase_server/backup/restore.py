"""Restores a backup into an empty data directory."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from rillbase_native import EngineError, restore_database
from rillbase_server.backup.files import restore_files
from rillbase_server.backup.installation import analytics_folder
from rillbase_server.backup.postgres import verify_program
from rillbase_server.backup.problems import BackupProblem
from rillbase_server.backup.repository import BackupManifest, BackupRepository
from rillbase_server.launcher.account import private_directory, server_account, set_owner
from rillbase_server.launcher.child_environment import own_environment
from rillbase_server.launcher.data_directory import DataDirectory
from rillbase_server.launcher.embedded import EmbeddedPostgres, EmbeddedServerError
from rillbase_server.launcher.options import REPOSITORY, UpOptions
from rillbase_server.launcher.secrets_file import load_or_create

EPOCH_TIMEOUT_S = 120.0
#: Replaying the log of a busy day takes long.
RECOVERY_TIMEOUT_S = 24 * 3600.0
Report = Callable[[str], None]


def restore_backup(
    repository: BackupRepository,
    manifest: BackupManifest,
    data_dir: Path,
    until: datetime | None,
    report: Report,
) -> None:
    """Restore a backup, or PostgreSQL up to a later time that the archive covers.

    If it fails, the directory is empty again.
    """
    directory = DataDirectory(data_dir)
    if data_dir.exists() and any(data_dir.iterdir()):
        raise BackupProblem(f"{data_dir} is not empty.", "Restore into an empty directory.")
    _check_time(manifest, until)
    try:
        _restore(repository, manifest, directory, until, report)
    except BaseException:
        shutil.rmtree(data_dir, ignore_errors=True)
        raise


def _restore(
    repository: BackupRepository,
    manifest: BackupManifest,
    directory: DataDirectory,
    until: datetime | None,
    report: Report,
) -> None:
    directory.create()
    with repository.read(f"backups/{manifest.id}/secrets") as secrets:
        directory.secrets.touch(mode=0o600)
        directory.secrets.write_bytes(secrets.read())
    if manifest.has_node:
        report("Storage node")
        _restore_node(repository, manifest, directory)
    if folder := analytics_folder(directory):
        report("Files of datasets")
        stored = [file.object for file in manifest.files]
        members = [f"files/{name}" for name in repository.names("files")]
        restore_files(repository, members if until else stored, folder)
    report("PostgreSQL: base backup")
    _restore_base(repository, manifest, directory)
    report("PostgreSQL: recovery")
    _recover(repository, manifest, directory, until)


def _check_time(manifest: BackupManifest, until: datetime | None) -> None:
    if until is None:
        return
    earliest = datetime.fromisoformat(manifest.point_at)
    if not earliest <= until <= datetime.now(UTC):
        raise BackupProblem(
            f"The time must be between that of the backup, {manifest.point_at}, and now."
        )


def _restore_node(
    repository: BackupRepository, manifest: BackupManifest, directory: DataDirectory
) -> None:
    account = server_account()
    private_directory(directory.node, account)
    with tempfile.TemporaryDirectory(dir=directory.root) as scratch:
        with (
            repository.read(f"backups/{manifest.id}/node") as file,
            tarfile.open(fileobj=file, mode="r|") as archive,
        ):
            archive.extractall(scratch, filter="data")
        try:
            restore_database(scratch, str(directory.node / "db"))
        except EngineError as error:
            raise BackupProblem(f"The storage node's data is damaged: {error}") from error
    for path in (directory.node / "db", *(directory.node / "db").rglob("*")):
        set_owner(path, account)


def _restore_base(
    repository: BackupRepository, manifest: BackupManifest, directory: DataDirectory
) -> None:
    account = server_account()
    private_directory(directory.postgres, account)
    data = directory.postgres / "data"
    data.mkdir(mode=0o700)
    with (
        repository.read(f"backups/{manifest.id}/base") as file,
        tarfile.open(fileobj=file, mode="r|") as archive,
    ):
        archive.extractall(data, filter="tar")
    # They are from the machine that was backed up.
    for name in ("postmaster.pid", "postmaster.opts"):
        (data / name).unlink(missing_ok=True)
    _verify_base(data)
    for path in (data, *data.rglob("*")):
        set_owner(path, account)


def _verify_base(data: Path) -> None:
    """Let PostgreSQL compare the files with the list that it wrote into the backup."""
    program = verify_program()
    if program is None:
        return
    argv = [program, "--no-parse-wal", "--exit-on-error", "--quiet", str(data)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BackupProblem(f"PostgreSQL's base backup is damaged: {done.stderr.strip()}")


def _recover(
    repository: BackupRepository,
    manifest: BackupManifest,
    directory: DataDirectory,
    until: datetime | None,
) -> None:
    """Replay the log up to the point, and make clients start over."""
    wal = private_directory(directory.postgres / "restored-wal", server_account())
    _restore_wal(repository, manifest, wal, archived=until is not None)
    signal = directory.postgres / "data" / "recovery.signal"
    signal.touch(mode=0o600)
    set_owner(signal, server_account())
    stored_secrets = load_or_create(directory.secrets, data_exists=True)
    postgres = EmbeddedPostgres(
        directory.postgres,
        superuser_password=stored_secrets.postgres_password,
        settings=_recovery_settings(manifest, wal, until),
        start_deadline_s=RECOVERY_TIMEOUT_S,
    )
    try:
        with postgres:
            variables = own_environment(
                UpOptions(directory.root), stored_secrets, {"DATABASE_URL": postgres.url}
            )
            _raise_epoch(variables)
    except EmbeddedServerError as error:
        raise BackupProblem(
            f"PostgreSQL could not be recovered to this point: {error}",
            "If you named a time, the archive may not reach it: `backup list` shows how far it "
            "goes.",
        ) from error
    shutil.rmtree(wal)


def _restore_wal(
    repository: BackupRepository, manifest: BackupManifest, folder: Path, *, archived: bool
) -> None:
    stored = {segment: f"backups/{manifest.id}/wal/{segment}" for segment in manifest.wal}
    if archived:
        later = [name for name in repository.names("wal") if name >= manifest.wal[0]]
        stored = {name: f"wal/{name}" for name in later} | stored
    for segment, name in stored.items():
        with repository.read(name) as file:
            (folder / segment).write_bytes(file.read())
        set_owner(folder / segment, server_account())


def _recovery_settings(
    manifest: BackupManifest, wal: Path, until: datetime | None
) -> Mapping[str, str]:
    folder = shlex.quote(str(wal).replace("%", "%%"))
    settings = {
        "restore_command": f'cp {folder}/%f "%p"',
        "recovery_target_timeline": "current",
        "recovery_target_action": "promote",
    }
    if until is None:
        return settings | {"recovery_target_name": manifest.restore_point}
    return settings | {"recovery_target_time": until.isoformat()}


def _raise_epoch(variables: Mapping[str, str]) -> None:
    """Invalidate what clients and streams know: the database assigns versions again."""
    argv = [sys.executable, str(REPOSITORY / "manage.py"), "raise_installation_epoch"]
    done = subprocess.run(
        argv,
        env=dict(variables),
        capture_output=True,
        text=True,
        timeout=EPOCH_TIMEOUT_S,
        check=False,
    )
    if done.returncode:
        raise BackupProblem(f"The installation epoch could not be raised: {done.stderr.strip()}")
