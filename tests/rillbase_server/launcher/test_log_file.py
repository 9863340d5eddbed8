"""Bounded log files."""

from pathlib import Path

from rillbase_server.launcher.log_file import RotatingLogFile


def test_a_full_log_is_rotated_and_old_ones_are_dropped(tmp_path: Path) -> None:
    log = RotatingLogFile(tmp_path / "web.log", max_bytes=100, kept_files=2)
    for number in range(100):
        log.write(b"line %04d" % number)
    log.close()
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["web.log", "web.log.1", "web.log.2"]
    assert all(path.stat().st_size <= 100 for path in tmp_path.iterdir())
    assert (tmp_path / "web.log").read_bytes().endswith(b"line 0099\n")


def test_a_restarted_launcher_continues_the_same_log(tmp_path: Path) -> None:
    for text in (b"first", b"second"):
        log = RotatingLogFile(tmp_path / "web.log")
        log.write(text)
        log.close()
    assert (tmp_path / "web.log").read_bytes() == b"first\nsecond\n"


def test_a_full_disk_loses_the_line_but_not_the_launcher() -> None:
    log = RotatingLogFile(Path("/dev/full"))
    log.write(b"lost")
    assert log.failure
    log.close()


def test_a_log_that_could_not_be_rotated_is_rotated_later(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "web.log"
    path.parent.mkdir()
    log = RotatingLogFile(path, max_bytes=8, kept_files=1)
    log.write(b"first")
    path.unlink()
    path.parent.rmdir()
    log.write(b"lost")
    assert log.failure == "No such file or directory"
    path.parent.mkdir()
    log.write(b"found")
    log.close()
    assert log.failure == ""
    assert path.read_bytes() == b"found\n"
