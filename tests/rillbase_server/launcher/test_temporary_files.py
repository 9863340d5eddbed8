"""The folder for temporary files of one start."""

import os
import tempfile
from pathlib import Path

import pytest

from rillbase_server.launcher import temporary_files
from rillbase_server.launcher.data_directory import DataDirectory
from tests.machine import require_root


@pytest.fixture
def directory(tmp_path: Path) -> DataDirectory:
    directory = DataDirectory(tmp_path / "data")
    directory.create()
    return directory


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The machine's folder for temporary files."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_a_stop_removes_the_folder(directory: DataDirectory, machine: Path) -> None:
    variables = temporary_files.create(directory)
    (folder,) = machine.iterdir()
    assert variables == {"TMPDIR": str(folder)}
    assert folder.stat().st_mode & 0o066 == 0
    (folder / "blocks").mkdir()
    temporary_files.remove(directory)
    assert list(machine.iterdir()) == []
    assert not directory.temporary.is_symlink()
    temporary_files.remove(directory)


def test_the_next_start_removes_what_a_killed_launcher_left(
    directory: DataDirectory, machine: Path
) -> None:
    temporary_files.create(directory)
    variables = temporary_files.create(directory)
    assert [str(folder) for folder in machine.iterdir()] == [variables["TMPDIR"]]


def test_a_missing_folder_is_no_problem(directory: DataDirectory, machine: Path) -> None:
    Path(temporary_files.create(directory)["TMPDIR"]).rmdir()
    temporary_files.create(directory)
    assert len(list(machine.iterdir())) == 1


@pytest.mark.parametrize("name", ["photos", "rillbase-photos"])
def test_folders_of_others_stay(directory: DataDirectory, machine: Path, name: str) -> None:
    folder = machine / name
    folder.mkdir()
    if name.startswith(temporary_files.PREFIX):
        require_root("give a folder away")
        os.chown(folder, 12_345, 12_345)
    directory.temporary.symlink_to(folder)
    temporary_files.create(directory)
    assert folder.is_dir()
    assert directory.temporary.resolve() != folder
