"""The folder of backups: who may open it, what counts as a backup, and what is removed."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import pytest

from rillbase_server.backup.command_line import main
from rillbase_server.backup.files import restore_files, store_files
from rillbase_server.backup.problems import BackupProblem
from rillbase_server.backup.repository import BackedUpFile, BackupManifest, BackupRepository
from rillbase_server.backup.upkeep import prune, verify_backup

KEY = bytes(range(32))


@pytest.fixture
def repository(tmp_path: Path) -> BackupRepository:
    return BackupRepository(tmp_path / "backups", KEY)


def add(
    repository: BackupRepository, backup_id: str, files: tuple[BackedUpFile, ...] = (), wal: int = 1
) -> BackupManifest:
    """Add a small backup."""
    segment = f"{wal:024X}"
    for name in ("secrets", "base", f"wal/{segment}"):
        with repository.write(f"backups/{backup_id}/{name}") as file:
            file.write(secrets.token_bytes(1000))
    manifest = BackupManifest(
        id=backup_id,
        started_at="2026-05-01T00:00:00+00:00",
        point_at="2026-05-01T00:00:01+00:00",
        finished_at="2026-05-01T00:00:02+00:00",
        restore_point="point",
        system_identifier="1",
        postgres_version="18.0",
        rillbase_version="0.2.0",
        wal=(segment,),
        has_node=False,
        files=files,
        base_bytes=1000,
        node_bytes=0,
    )
    repository.finish(manifest)
    return manifest


def test_backups_are_found_again_with_the_key(repository: BackupRepository) -> None:
    backups = [add(repository, name) for name in ("20260501T000000Z", "20260502T000000Z")]
    again = BackupRepository(repository.root, KEY)
    assert again.backups() == backups
    assert again.choose(None) == backups[1]
    assert again.choose(backups[0].id) == backups[0]


def test_another_key_is_rejected(repository: BackupRepository) -> None:
    with pytest.raises(BackupProblem, match="The key does not open the repository"):
        BackupRepository(repository.root, bytes(32))


def test_a_folder_with_other_files_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("Dear")
    with pytest.raises(BackupProblem, match="contains files, but no repository"):
        BackupRepository(tmp_path, KEY)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_an_interrupted_backup_is_not_a_backup(repository: BackupRepository) -> None:
    add(repository, "20260501T000000Z")
    with repository.write("backups/20260502T000000Z/base") as file:
        file.write(b"half")
    assert [backup.id for backup in repository.backups()] == ["20260501T000000Z"]
    assert repository.incomplete() == ["20260502T000000Z"]


def test_verification_detects_damage_and_missing_files(repository: BackupRepository) -> None:
    backup = add(repository, "20260501T000000Z")
    assert verify_backup(repository, backup) == 3000
    base = repository.root / "backups" / backup.id / "base"
    intact = base.read_bytes()
    base.write_bytes(intact[:-1])
    with pytest.raises(BackupProblem, match="damaged"):
        verify_backup(repository, backup)
    base.unlink()
    with pytest.raises(BackupProblem, match="missing"):
        verify_backup(repository, backup)


def test_files_are_stored_once_and_restored_with_their_content(
    repository: BackupRepository, tmp_path: Path
) -> None:
    source = tmp_path / "analytics"
    (source / "a").mkdir(parents=True)
    (source / "a" / "1.parquet").write_bytes(b"one")
    first = store_files(repository, source)
    (source / "a" / "2.parquet").write_bytes(b"two")
    second = store_files(repository, source)
    assert [file.path for file in second] == ["a/1.parquet", "a/2.parquet"]
    assert second[0] == first[0]
    assert len(repository.names("files")) == 2
    restore_files(repository, [file.object for file in first], tmp_path / "first")
    restore_files(repository, [file.object for file in second], tmp_path / "second")
    assert sorted(path.name for path in (tmp_path / "first" / "a").iterdir()) == ["1.parquet"]
    assert (tmp_path / "second" / "a" / "2.parquet").read_bytes() == b"two"


def test_a_file_that_was_stored_while_it_was_written_is_stored_again(
    repository: BackupRepository, tmp_path: Path
) -> None:
    source = tmp_path / "analytics"
    source.mkdir()
    (source / "1.parquet").write_bytes(b"ha")
    store_files(repository, source)
    (source / "1.parquet").write_bytes(b"half and the rest")
    os.utime(source / "1.parquet", (2_000_000_000, 2_000_000_000))
    store_files(repository, source)
    everything = [f"files/{name}" for name in repository.names("files")]
    for order in (everything, everything[::-1]):
        target = tmp_path / f"restored{order is everything}"
        restore_files(repository, order, target)
        assert (target / "1.parquet").read_bytes() == b"half and the rest"


def test_old_backups_are_removed_with_what_only_they_need(
    repository: BackupRepository, tmp_path: Path
) -> None:
    source = tmp_path / "analytics"
    source.mkdir()
    for name in ("old", "kept"):
        (source / name).write_bytes(name.encode())
    add(repository, "20260501T000000Z", store_files(repository, source), wal=1)
    (source / "old").unlink()
    newest = add(repository, "20260502T000000Z", store_files(repository, source), wal=3)
    for segment in (1, 2, 3, 4):
        with repository.write(f"wal/{segment:024X}") as file:
            file.write(b"log")
    (source / "archived since").write_bytes(b"new")
    store_files(repository, source)
    gone = prune(repository, keep=1)
    assert gone.backups == ("20260501T000000Z",)
    assert (gone.segments, gone.files) == (2, 1)
    assert repository.backups() == [newest]
    assert repository.names("wal") == [f"{segment:024X}" for segment in (3, 4)]
    assert len(repository.names("files")) == 2
    verify_backup(repository, newest)


def test_two_processes_do_not_change_backups_at_once(repository: BackupRepository) -> None:
    with (
        repository.locked(),
        pytest.raises(BackupProblem, match="Another process"),
        repository.locked(),
    ):
        pass


def test_the_command_line_names_the_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = tmp_path / "key"
    assert main(["list", str(tmp_path / "none"), "--key-file", str(key)]) == 21
    assert "contains no backups" in capsys.readouterr().err
    nothing = ["--key-file", str(key), "--data-dir", str(tmp_path / "data")]
    assert main(["create", str(tmp_path / "repository"), *nothing]) == 21
    assert "No Rillbase is running" in capsys.readouterr().err
    BackupRepository(tmp_path / "repository", KEY)
    assert main(["list", str(tmp_path / "repository"), "--key-file", str(key)]) == 21
    assert "does not exist" in capsys.readouterr().err
    key.write_text("not a key")
    assert main(["list", str(tmp_path / "repository"), "--key-file", str(key)]) == 21
    assert "is not a key file" in capsys.readouterr().err
    inside = str(tmp_path / "repository" / "key")
    assert main(["list", str(tmp_path / "repository"), "--key-file", inside]) == 21
    assert "may not be in the repository" in capsys.readouterr().err


def test_a_directory_with_data_is_not_restored_into(
    repository: BackupRepository, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add(repository, "20260501T000000Z")
    (tmp_path / "key").write_text(KEY.hex())
    data = tmp_path / "data"
    data.mkdir()
    (data / "secrets.json").write_text("{}")
    options = ["--key-file", str(tmp_path / "key"), "--data-dir", str(data)]
    assert main(["restore", str(repository.root), *options]) == 21
    assert "is not empty" in capsys.readouterr().err
    assert (data / "secrets.json").read_text() == "{}"
