"""The command line of backups: `manage.py backup create|list|verify|restore|archive|prune`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

from rillbase_server.backup.problems import BackupProblem
from rillbase_server.backup.repository import BackupManifest, BackupRepository, load_or_create_key
from rillbase_server.backup.sealing import SealBrokenError
from rillbase_server.launcher.options import default_data_dir
from rillbase_server.launcher.problems import ExitCode, LauncherProblem

DEFAULT_INTERVAL_S = 60.0
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_STEP = 1024
Command: TypeAlias = Callable[[argparse.Namespace], None]


def main(arguments: Sequence[str]) -> int:
    """Run one command; report problems as a message and an exit code."""
    options = _parser().parse_args(arguments)
    command: Command = options.run
    try:
        command(options)
    except LauncherProblem as problem:
        sys.stderr.write(f"Error: {problem.what}\n" + (f"{problem.fix}\n" if problem.fix else ""))
        return int(problem.code)
    except SealBrokenError as error:
        sys.stderr.write(f"Error: The backup is damaged: {error}.\n")
        return int(ExitCode.BACKUP_FAILED)
    except KeyboardInterrupt:
        return int(ExitCode.OK)
    return int(ExitCode.OK)


def _create(options: argparse.Namespace) -> None:
    from rillbase_server.backup.create import create_backup  # noqa: PLC0415 -- see _parser
    from rillbase_server.backup.installation import running_installation  # noqa: PLC0415

    installation = running_installation(options.data_dir.absolute())
    backup = create_backup(installation, _repository(options, may_create=True), _print)
    if installation.analytics is None:
        _print("The files of datasets are in a bucket, which is not part of this backup.")
    _print(f"Backup {backup.id} is complete: {_size(_bytes(backup))}.")


def _list(options: argparse.Namespace) -> None:
    repository = _repository(options)
    for backup in repository.backups():
        _print(
            f"{backup.id}  {backup.point_at}  {_size(_bytes(backup)):>10}  "
            f"{len(backup.files)} files of datasets  Rillbase {backup.rillbase_version}"
        )
    if archived := repository.names("wal"):
        newest = (repository.root / "wal" / archived[-1]).stat().st_mtime
        until = datetime.fromtimestamp(newest, UTC).isoformat(timespec="seconds")
        _print(f"The archive has {len(archived)} segments and goes up to about {until}.")


def _verify(options: argparse.Namespace) -> None:
    from rillbase_server.backup.upkeep import verify_backup  # noqa: PLC0415

    repository = _repository(options)
    backups = [repository.choose(options.backup)] if options.backup else repository.backups()
    for backup in backups:
        _print(f"{backup.id} is intact: {_size(verify_backup(repository, backup))} read")


def _restore(options: argparse.Namespace) -> None:
    from rillbase_server.backup.restore import restore_backup  # noqa: PLC0415

    repository = _repository(options)
    backup = repository.choose(options.backup)
    data_dir = options.data_dir.absolute()
    restore_backup(repository, backup, data_dir, options.to, _print)
    _print(f"Restored into {data_dir}. Start it with `manage.py up --data-dir {data_dir}`.")


def _archive(options: argparse.Namespace) -> None:
    from rillbase_server.backup.archive import archive  # noqa: PLC0415
    from rillbase_server.backup.installation import running_installation  # noqa: PLC0415

    installation = running_installation(options.data_dir.absolute())
    archive(installation, _repository(options, may_create=True), options.interval, _print)


def _prune(options: argparse.Namespace) -> None:
    from rillbase_server.backup.upkeep import prune  # noqa: PLC0415

    removed = prune(_repository(options), options.keep)
    _print(
        f"Removed {len(removed.backups)} backups, {removed.segments} segments of the archive and "
        f"{removed.files} files of datasets."
    )


def _repository(options: argparse.Namespace, *, may_create: bool = False) -> BackupRepository:
    root: Path = options.repository.absolute()
    if not may_create and not (root / "repository.json").exists():
        raise BackupProblem(f"{root} contains no backups.")
    key_file: Path = options.key_file.absolute()
    if key_file.is_relative_to(root):
        raise BackupProblem(
            "The key file may not be in the repository.",
            "Anyone who obtains the backups would also have their key.",
        )
    key, is_new = load_or_create_key(key_file, may_create=may_create)
    repository = BackupRepository(root, key)
    if is_new:
        _print(
            f"Created the key {key_file}. Keep a copy elsewhere: without it, the backups cannot "
            "be restored."
        )
    return repository


def _parser() -> argparse.ArgumentParser:
    """Return the parser. The commands import what they need, so that each starts quickly."""
    parser = argparse.ArgumentParser(
        prog="manage.py backup", description="Back up and restore an installation."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, summary: str, run: Command) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=summary, description=f"{summary}.")
        added.set_defaults(run=run)
        added.add_argument("repository", type=Path, help="folder of the backups")
        added.add_argument(
            "--key-file",
            type=Path,
            required=True,
            help="file with the key of the backups; the first `create` creates it",
        )
        return added

    create = add("create", "Back up a running installation", _create)
    add("list", "Show the backups", _list)
    verify = add("verify", "Read backups completely, and check that they are intact", _verify)
    restore = add("restore", "Restore into an empty data directory", _restore)
    archive = add("archive", "Archive PostgreSQL's log until interrupted", _archive)
    prune = add("prune", "Remove old backups", _prune)
    for command in (create, archive, restore):
        command.add_argument(
            "--data-dir", type=Path, default=default_data_dir(), help="default: %(default)s"
        )
    for command in (verify, restore):
        command.add_argument("--backup", metavar="ID", help="default: all, or the newest")
    restore.add_argument(
        "--to", type=_time, metavar="TIME", help="recover up to this time, e.g. 2026-05-01T12:00Z"
    )
    archive.add_argument(
        "--interval", type=float, default=DEFAULT_INTERVAL_S, help="seconds; default: 60"
    )
    prune.add_argument("--keep", type=_positive, required=True, help="how many backups to keep")
    return parser


def _time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.astimezone()


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _bytes(backup: BackupManifest) -> int:
    return backup.base_bytes + backup.node_bytes + backup.files_bytes


def _size(count: float) -> str:
    for unit in _UNITS:
        if count < _STEP or unit == _UNITS[-1]:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= _STEP
    raise AssertionError


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
