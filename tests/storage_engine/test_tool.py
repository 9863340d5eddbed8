"""The command line that looks after a database."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rillbase_native import Engine, EngineError
from storage_engine.tool import main

ENGINE_TESTS = Path(__file__).parents[2] / "native" / "engine" / "tests"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A database with two keyspaces; one entry is only in the log."""
    directory = tmp_path / "database"
    with Engine(directory) as engine:
        for name in ("left", "right"):
            engine.create_keyspace(name)
        batch = engine.batch()
        for number in range(1000):
            batch.put("left", f"key {number:04}".encode(), b"value")
        batch.put("right", b"other", b"value")
        batch.write()
        engine.flush()
        late = engine.batch()
        late.put("left", b"late", b"value")
        late.write()
    return directory


def entries(directory: Path) -> list[bytes]:
    with Engine(directory) as engine:
        return [key for key, _ in engine.scan("left")]


def test_stats_describe_each_keyspace(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stats", str(database)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert " ".join(lines[0].split()) == "keyspace level runs files size entries deletes"
    left, amplified = (line.split() for line in lines if line.startswith("left"))
    assert left[:4] == ["left", "0", "1", "1"]
    assert left[6:] == ["1,000", "0"]
    # The one run, and the memtable that has what was only in the log.
    assert amplified == ["left", "2", "1.00"]


def test_a_sound_database_is_verified(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(database)]) == 0
    output = capsys.readouterr().out
    assert output.startswith("sound: 2 tables with 1,001 entries")


def test_damage_is_named(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = max(database.glob("*.table"), key=lambda path: path.stat().st_size)
    damaged = bytearray(table.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    table.write_bytes(damaged)
    assert main(["verify", str(database)]) == 1
    output = capsys.readouterr().err
    assert str(table) in output
    assert "offset" in output


def test_a_damaged_log_is_truncated(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    segment = max((database / "log").glob("*.wal"))
    content = bytearray(segment.read_bytes())
    content[content.index(b"late")] ^= 1
    segment.write_bytes(content)
    assert main(["verify", str(database)]) == 1
    assert str(segment) in capsys.readouterr().err
    assert main(["truncate-log", str(database)]) == 0
    output = capsys.readouterr().out
    assert f"truncated {segment}" in output
    copy = segment.with_name(f"{segment.name}.damaged")
    assert str(copy) in output
    assert copy.read_bytes() == content
    assert main(["verify", str(database)]) == 0
    assert entries(database) == [f"key {number:04}".encode() for number in range(1000)]
    capsys.readouterr()
    assert main(["truncate-log", str(database)]) == 0
    assert "not damaged" in capsys.readouterr().out


def test_files_are_listed_and_shown(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dump", str(database)]) == 0
    files = [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]]
    shown = {}
    for kind in (".table", ".wal", "MANIFEST"):
        for name in files:
            if kind in name:
                assert main(["dump", str(database), name]) == 0
        shown[kind] = capsys.readouterr().out
    assert '"key 0999" = "value"' in shown[".table"]
    assert '"late" = "value"' in shown[".wal"]
    assert "right" in shown["MANIFEST"]


def test_compaction_leaves_one_run(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compact", str(database), "--keyspace", "left"]) == 0
    lines = capsys.readouterr().out.splitlines()
    left, amplified = (line.split() for line in lines if line.startswith("left"))
    assert left[6] == "1,001"
    assert amplified == ["left", "2", "1.00"]
    assert len(entries(database)) == 1001


def test_a_backup_is_restored(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    backup, restored = tmp_path / "backup", tmp_path / "restored"
    assert main(["backup", str(database), str(backup)]) == 0
    assert main(["restore", str(backup), str(restored)]) == 0
    assert "restored and verified" in capsys.readouterr().out
    assert entries(restored) == entries(database)
    assert main(["restore", str(backup), str(database)]) == 1
    assert "not empty" in capsys.readouterr().err


def test_what_it_cannot_fold_it_leaves_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Another program wrote it: `list` of `merged` has operands in a table and in the log.
    database, restored = tmp_path / "database", tmp_path / "restored"
    shutil.copytree(ENGINE_TESTS / "version_1" / "database", database)
    for command in ("stats", "compact", "verify"):
        assert main([command, str(database)]) == 0
    assert main(["backup", str(database), str(tmp_path / "backup")]) == 0
    assert main(["restore", str(tmp_path / "backup"), str(restored)]) == 0
    capsys.readouterr()
    for directory in (database, restored):
        for table in sorted(directory.glob("*.table")):
            assert main(["dump", str(directory), table.name]) == 0
        shown = capsys.readouterr().out
        for operand in ("one ", "two ", "three"):
            assert f'Merge "list" = "{operand}"' in shown
        with pytest.raises(EngineError, match="append"):
            Engine(directory)


def test_a_directory_without_a_database_stays_without(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["stats"], ["verify"], ["dump"], ["compact"]):
        assert main([*command, str(tmp_path)]) == 1
        assert "contains no database" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_database_that_is_open_elsewhere_is_rejected(
    database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Engine(database):
        assert main(["verify", str(database)]) == 1
        assert "open elsewhere" in capsys.readouterr().err
