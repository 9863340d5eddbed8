"""Maintain a database of the storage engine.

    python -m storage_engine.tool stats DIR
    python -m storage_engine.tool verify DIR
    python -m storage_engine.tool truncate-log DIR
    python -m storage_engine.tool dump DIR [FILE]
    python -m storage_engine.tool compact DIR [--keyspace NAME]
    python -m storage_engine.tool backup DIR TARGET
    python -m storage_engine.tool restore BACKUP DIR

Each locks the database, so a process that has it open must close it first; only `dump` reads
without the lock. The tool does not know what merge operands mean: compactions keep them as they
are.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from rillbase_native import (
    Engine,
    EngineError,
    dump_file,
    restore_database,
    truncate_damaged_log,
    verify_database,
)
from storage_engine import report

Command: TypeAlias = Callable[[argparse.Namespace], None]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    options = _parser().parse_args(arguments)
    command: Command = options.command
    try:
        command(options)
    except (EngineError, NoDatabaseError) as error:
        _print(f"error: {error}", to_people=True)
        return 1
    except BrokenPipeError:
        # The reader of the output has closed the pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


class NoDatabaseError(Exception):
    """The directory contains no database."""

    def __init__(self, directory: Path) -> None:
        super().__init__(f"{directory} contains no database")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m storage_engine.tool", description="Inspect, verify and copy a database."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, summary: str, command: Command) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=summary, description=f"{summary}.")
        added.set_defaults(command=command)
        return added

    def directory(parser: argparse.ArgumentParser, name: str, summary: str) -> None:
        parser.add_argument(name, type=Path, metavar=name.upper(), help=summary)

    directory(add("stats", "Describe the contents of a database", _stats), "dir", "the database")
    directory(add("verify", "Read and verify everything", _verify), "dir", "the database")
    truncate = add("truncate-log", "Truncate a damaged log where the damage begins", _truncate_log)
    directory(truncate, "dir", "the database")
    dump = add("dump", "Print one of its files as text, or list them", _dump)
    directory(dump, "dir", "the database")
    dump.add_argument("file", nargs="?", metavar="FILE", help="name of a file, as listed")
    compact = add("compact", "Merge the tables of each keyspace into one run", _compact)
    directory(compact, "dir", "the database")
    compact.add_argument("--keyspace", metavar="NAME", help="only this keyspace")
    backup = add("backup", "Copy the database and verify the copy", _backup)
    directory(backup, "dir", "the database")
    directory(backup, "target", "an empty or missing directory")
    restore = add("restore", "Create a database from a backup", _restore)
    directory(restore, "backup", "the backup")
    directory(restore, "dir", "an empty or missing directory")
    return parser


def _stats(options: argparse.Namespace) -> None:
    with _open(options.dir) as engine:
        for line in report.stats(engine):
            _print(line)


def _verify(options: argparse.Namespace) -> None:
    progress = ProgressLine("checked")
    totals = verify_database(_existing(options.dir), progress.of)
    progress.end()
    _print(
        f"sound: {totals['tables']:,} tables with {totals['entries']:,} entries,"
        f" {report.size(totals['table_bytes'])};"
        f" {totals['log_records']:,} records in {totals['log_segments']:,} segments of the log"
    )
    if totals["log_cut"]:
        file, offset, records = totals["log_cut"]
        _print(
            f"the end of the log was never synced: opening the database truncates {file} at "
            f"offset {offset}, with {records:,} records after it"
        )


def _truncate_log(options: argparse.Namespace) -> None:
    truncated = truncate_damaged_log(_existing(options.dir))
    if truncated is None:
        _print("the log is not damaged; nothing was changed")
        return
    _print(
        f"truncated {truncated['file']} at offset {truncated['offset']}: {truncated['records']:,}"
        f" records remain, {truncated['dropped']:,} readable ones after the damage are dropped"
    )
    for copy in truncated["copies"]:
        _print(f"copy of a file as it was: {copy}")


def _dump(options: argparse.Namespace) -> None:
    directory = _existing(options.dir)
    if options.file:
        dump_file(directory / options.file, sys.stdout.write)
        return
    files = [path for path in sorted(directory.rglob("*")) if path.is_file()]
    rows = [(str(path.relative_to(directory)), report.size(path.stat().st_size)) for path in files]
    for line in report.table(("file", "size"), rows):
        _print(line)


def _compact(options: argparse.Namespace) -> None:
    with _open(options.dir) as engine:
        names = [options.keyspace] if options.keyspace else engine.keyspaces()
        for index, name in enumerate(names, start=1):
            _print(f"{index} of {len(names)}: {name}", to_people=True)
            engine.compact(name)
        for line in report.stats(engine):
            _print(line)


def _backup(options: argparse.Namespace) -> None:
    progress = ProgressLine("copied and verified")
    with _open(options.dir) as engine:
        totals = engine.backup(options.target, progress.of)
    progress.end()
    size = report.size(totals["table_bytes"])
    _print(
        f"copied and verified: {totals['tables']:,} tables, {totals['entries']:,} entries, {size}"
    )


def _restore(options: argparse.Namespace) -> None:
    progress = ProgressLine("copied")
    totals = restore_database(_existing(options.backup), options.dir, progress.bytes)
    progress.end()
    _print(f"restored and verified: {totals['tables']:,} tables, {totals['entries']:,} entries")


def _existing(directory: Path) -> Path:
    """Return the directory if it contains a database; opening any other would create one."""
    if not (directory / "CURRENT").is_file():
        raise NoDatabaseError(directory)
    return directory


def _open(directory: Path) -> Engine:
    return Engine(_existing(directory), background_threads=1, unknown_merges=True)


class ProgressLine:
    """A progress line, overwritten as work proceeds, on terminals."""

    def __init__(self, verb: str) -> None:
        self._verb = verb
        self._shown = ""

    def of(self, done: int, total: int) -> None:
        """Show how much is done of how much."""
        percent = 100 * done // max(total, 1)
        self._show(f"{self._verb} {report.size(done)} of {report.size(total)} ({percent} %)")

    def bytes(self, done: int) -> None:
        """Show how much is done."""
        self._show(f"{self._verb} {report.size(done)}")

    def end(self) -> None:
        """Leave the line as it is."""
        if self._shown:
            sys.stderr.write("\n")

    def _show(self, text: str) -> None:
        if sys.stderr.isatty() and text != self._shown:
            sys.stderr.write(f"\r{text.ljust(len(self._shown))}")
            sys.stderr.flush()
            self._shown = text


def _print(line: str, *, to_people: bool = False) -> None:
    stream = sys.stderr if to_people else sys.stdout
    stream.write(f"{line}\n")


if __name__ == "__main__":
    raise SystemExit(main())
