"""Classifies failures of the database or of a disk: no space, an unavailable server, or a bug.

Classifies by PostgreSQL's SQLSTATE and the operating system's error number. Responses to callers
and retries of background work use the same table, so a full disk is never treated as a bug.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping

import psycopg
from django.db import DatabaseError, InterfaceError, OperationalError

from foundation import errors, write_stop

RETRY_AFTER_S = 1
#: An operator has to free disk space first, so an immediate retry is pointless.
STORAGE_RETRY_AFTER_S = 30

#: Includes file system quotas and file size limits, which are equivalent for callers.
DISK_FULL_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
#: Too many open files, of the process or of the machine.
_EXHAUSTED_ERRNOS = frozenset({errno.EMFILE, errno.ENFILE})
_DISK_FULL = "53100"
_READ_ONLY = "25006"

#: Conditions that pass without a change of the statement.
_UNAVAILABLE = frozenset(
    {
        "25P03",  # idle in a transaction for too long
        "25P04",  # the transaction took too long
        "40001",  # serialization failure
        "40P01",  # deadlock
        "55P03",  # lock timeout
        "57014",  # statement timeout
        "57P01",  # the server is shutting down
        "57P02",  # another backend crashed
        "57P03",  # the server is starting or recovering
        "57P05",  # idle for too long
        _READ_ONLY,
    }
)
#: Connection exceptions; insufficient resources, which includes too many connections.
_UNAVAILABLE_CLASSES = frozenset({"08", "53"})

_DETAILS: Mapping[str, str] = {
    _DISK_FULL: (
        "The database's disk is full, so nothing was changed. Retry after the operator has freed "
        "space."
    ),
    _READ_ONLY: (
        "The database is read-only at the moment, for example after a failover, so nothing was "
        "changed. Retry."
    ),
}
_FILE_DETAIL = (
    "The server's disk is full, so nothing was changed. Retry after the operator has freed space."
)
_EXHAUSTED_DETAIL = "The server has reached its limit of open files and connections. Retry."
_DETAIL = "The database did not respond in time. Retry."

#: Raised without an SQLSTATE when the connection is lost, or none could be opened.
_CONNECTION_LOST = (
    OperationalError,
    InterfaceError,
    psycopg.OperationalError,
    psycopg.InterfaceError,
)


def sqlstate_of(raised: BaseException | None) -> str:
    """Return the SQLSTATE of an error of the driver, or of the one that Django wrapped; or ''."""
    if isinstance(raised, psycopg.Error):
        return raised.sqlstate or ""
    if isinstance(raised, DatabaseError | InterfaceError):
        return sqlstate_of(raised.__cause__)
    return ""


def is_disk_full(raised: BaseException | None) -> bool:
    """Return whether the database or this process ran out of disk space."""
    if isinstance(raised, OSError):
        return raised.errno in DISK_FULL_ERRNOS
    return sqlstate_of(raised) == _DISK_FULL


def refuses_writes(raised: BaseException | None) -> bool:
    """Return whether only an operator can help: the disk is full, or the database is read-only.
    Work that failed for this reason is postponed for as long as it lasts and does not count as
    failed.
    """
    return is_disk_full(raised) or sqlstate_of(raised) == _READ_ONLY


def transient_error(raised: BaseException) -> errors.ApiError | None:
    """Return the public error for a transient condition, or None for any other error."""
    sqlstate = sqlstate_of(raised)
    if sqlstate == _READ_ONLY and write_stop.in_force():
        sqlstate = _DISK_FULL
    if is_disk_full(raised) or sqlstate == _DISK_FULL:
        detail = _DETAILS[_DISK_FULL] if sqlstate else _FILE_DETAIL
        return errors.StorageFull(detail, headers=_retry_after(STORAGE_RETRY_AFTER_S))
    if isinstance(raised, OSError) and raised.errno in _EXHAUSTED_ERRNOS:
        return errors.Unavailable(_EXHAUSTED_DETAIL, headers=_retry_after(RETRY_AFTER_S))
    is_unavailable = not sqlstate and isinstance(raised, _CONNECTION_LOST)
    if is_unavailable or sqlstate in _UNAVAILABLE or sqlstate[:2] in _UNAVAILABLE_CLASSES:
        detail = _DETAILS.get(sqlstate, _DETAIL)
        return errors.Unavailable(detail, headers=_retry_after(RETRY_AFTER_S))
    return None


def _retry_after(seconds: int) -> Mapping[str, str]:
    return {"Retry-After": str(seconds)}
