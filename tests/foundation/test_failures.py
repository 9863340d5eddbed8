"""How failures of the database and of disks are reported to callers."""

import errno
from pathlib import Path

import psycopg
import pytest
from django.db import InternalError, OperationalError

from analytics.rows.durable import durable_file
from foundation.api.problems import translate
from foundation.errors import StorageFull
from foundation.failures import is_disk_full
from rillbase_server.launcher.data_directory import DataDirectory


def _wrapped(cause: psycopg.Error) -> Exception:
    wrapped = OperationalError("as Django tells it")
    wrapped.__cause__ = cause
    return wrapped


@pytest.mark.parametrize(
    "raised",
    [
        psycopg.errors.DiskFull("could not extend file"),
        _wrapped(psycopg.errors.DiskFull("could not extend file")),
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
    ],
)
def test_a_full_disk_is_reported_as_storage_full_with_a_retry_time(raised: Exception) -> None:
    error = translate(raised)
    assert (error.status, error.code) == (507, "storage_full")
    assert "disk is full" in error.detail
    assert int(error.headers["Retry-After"]) > 0
    assert is_disk_full(raised)


@pytest.mark.parametrize(
    "raised",
    [
        psycopg.errors.TooManyConnections("sorry, too many clients already"),
        psycopg.errors.OutOfMemory("out of memory"),
        psycopg.errors.ConfigurationLimitExceeded("temporary file size exceeds temp_file_limit"),
        psycopg.errors.ReadOnlySqlTransaction("cannot execute INSERT in a read-only transaction"),
        psycopg.errors.CannotConnectNow("the database system is in recovery mode"),
        psycopg.errors.CrashShutdown("terminating connection because of crash"),
        psycopg.errors.ConnectionFailure("gone"),
        psycopg.OperationalError("the connection to the database was lost"),
        _wrapped(psycopg.errors.TooManyConnections("sorry")),
        OSError(errno.EMFILE, "Too many open files"),
    ],
)
def test_a_database_that_cannot_answer_now_is_unavailable_and_no_bug(raised: Exception) -> None:
    error = translate(raised)
    assert (error.status, error.code) == (503, "unavailable")
    assert error.headers["Retry-After"]
    assert not is_disk_full(raised)


@pytest.mark.parametrize(
    "raised",
    [
        psycopg.errors.SyntaxError("syntax error at or near"),
        InternalError("nothing known"),
        FileNotFoundError(errno.ENOENT, "No such file or directory"),
    ],
)
def test_any_other_failure_is_reported_as_a_bug(raised: Exception) -> None:
    assert translate(raised).code == "internal"


def test_a_database_that_is_read_only_for_want_of_space_is_storage_full(
    settings_environment: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings_environment.setenv("RILLBASE_DATA_DIR", str(tmp_path))
    refusal = psycopg.errors.ReadOnlySqlTransaction("cannot execute INSERT")
    assert translate(refusal).code == "unavailable"
    DataDirectory(tmp_path).create()
    DataDirectory(tmp_path).write_stop.touch()
    error = translate(refusal)
    assert (error.status, error.code) == (507, "storage_full")
    with pytest.raises(StorageFull), durable_file(tmp_path / "upload"):
        raise AssertionError("an upload must not begin")
