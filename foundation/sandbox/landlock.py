"""The files of a worker: none, except what lies in the folders of its job.

Landlock is a part of the kernel that lets a process restrict itself, without privileges and for
good. The rules name open folders, so they hold however a path is spelled. TCP, abstract sockets and
signals to other processes are denied as well, where the kernel knows how.
"""

from __future__ import annotations

import ctypes
import os
import struct
from dataclasses import dataclass
from functools import lru_cache

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION, _PATH_BENEATH = 1, 1
_RULESET = struct.Struct("=QQQ")
_RULE = struct.Struct("=Qi")
#: Linux 6.2: earlier kernels let a process truncate files that it may only read.
MIN_VERSION = 3

_WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 1, 1 << 2, 1 << 3
_REMOVE_FILE, _MAKE_REG, _TRUNCATE = 1 << 5, 1 << 8, 1 << 14
#: The rights that a version of Landlock can deny, by the first version that can.
_FILE_RIGHTS = {1: (1 << 13) - 1, 2: 1 << 13, 3: _TRUNCATE, 5: 1 << 15}
_TCP = (1 << 0) | (1 << 1)
_ABSTRACT_SOCKETS_AND_SIGNALS = (1 << 0) | (1 << 1)
#: The first versions that know these.
_WITH_TCP, _WITH_SCOPES = 4, 6
_READABLE = _READ_FILE
_WRITABLE = _READ_FILE | _READ_DIR | _WRITE_FILE | _REMOVE_FILE | _MAKE_REG | _TRUNCATE


@dataclass(frozen=True, slots=True)
class JobFolders:
    """The open folders of a job: one whose files it may read, and one that it may fill."""

    readable: int
    writable: int


@lru_cache(maxsize=1)
def version() -> int:
    """Return the kernel's version of Landlock; 0 if it has none."""
    result = _call(_CREATE_RULESET, None, 0, _VERSION)
    return max(result, 0)


def can_confine_files() -> bool:
    """Return whether this kernel can restrict a process to its folders."""
    return version() >= MIN_VERSION


def restrict(folders: JobFolders | None) -> None:
    """Restrict this process to its folders, permanently. Needs `no_new_privs`.

    Raise `OSError` if the kernel refuses. Without folders, that is no reason to stop: workers of
    such jobs may open no file anyway (`foundation.sandbox.system_calls`).
    """
    version_number = version()
    if version_number == 0 and folders is None:
        return
    ruleset = _checked(_CREATE_RULESET, _handled(version_number), _ruleset_bytes(version_number), 0)
    if folders is not None:
        if not can_confine_files():
            raise OSError("this kernel cannot restrict a process to its folders")
        for folder, rights in ((folders.readable, _READABLE), (folders.writable, _WRITABLE)):
            _checked(_ADD_RULE, ruleset, _PATH_BENEATH, _RULE.pack(rights, folder), 0)
    _checked(_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _handled(version_number: int) -> bytes:
    files = sum(rights for since, rights in _FILE_RIGHTS.items() if version_number >= since)
    network = _TCP if version_number >= _WITH_TCP else 0
    scopes = _ABSTRACT_SOCKETS_AND_SIGNALS if version_number >= _WITH_SCOPES else 0
    return _RULESET.pack(files, network, scopes)


def _ruleset_bytes(version_number: int) -> int:
    """Return how much of the ruleset a version knows: it has grown twice."""
    return 8 if version_number < _WITH_TCP else 16 if version_number < _WITH_SCOPES else 24


def _checked(number: int, *arguments: int | bytes | None) -> int:
    result = _call(number, *arguments)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def _call(number: int, *arguments: int | bytes | None) -> int:
    values = [
        ctypes.c_long(argument) if isinstance(argument, int) else ctypes.c_char_p(argument)
        for argument in arguments
    ]
    return int(_syscall(ctypes.c_long(number), *values))


_syscall = ctypes.CDLL(None, use_errno=True).syscall
_syscall.restype = ctypes.c_long
