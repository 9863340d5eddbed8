"""Confines a worker before it reads its first byte.

It dies with the process that forked it, is the first to be killed when the machine or the container
runs out of memory, runs at the lowest CPU priority, cannot gain privileges, and cannot be traced or
leave a core dump. Where its parent is root, it gets a user id of its own. Its system calls are
restricted in `foundation.sandbox.system_calls`, and its files in `foundation.sandbox.landlock`.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import struct
from pathlib import Path

from foundation.sandbox.landlock import JobFolders

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_KEEPCAPS, _PR_SET_NO_NEW_PRIVS = 1, 4, 8, 38
_OOM_SCORE = Path("/proc/self/oom_score_adj")
_FIRST_TO_GO = "1000"
#: Decoding uses all the CPU time that it gets; requests take precedence.
_NICEST = 19
#: The user ids of workers. systemd reserves them for services without an account.
_FIRST_USER, _USERS = 61_184, 4_336
_CAP_DAC_READ_SEARCH = 1 << 2
#: For changing the user id, and for killing a worker that has another one: CAP_CHOWN,
#: CAP_DAC_READ_SEARCH, CAP_KILL, CAP_SETGID and CAP_SETUID.
_NEEDED_CAPABILITIES = (1 << 0) | _CAP_DAC_READ_SEARCH | (1 << 5) | (1 << 6) | (1 << 7)
_CAPABILITY_VERSION = 0x20080522
_STATUS = Path("/proc/self/status")


def confine(parent_pid: int) -> None:
    """Drop the privileges that a worker does not need. `parent_pid` is the process that forked
    it.
    """
    with contextlib.suppress(OSError):  # where /proc is read-only, the other limits still hold
        _OOM_SCORE.write_text(_FIRST_TO_GO)
    _control(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:  # the parent ended before the line above took effect
        os._exit(1)
    os.nice(_NICEST)
    hide()
    _control(_PR_SET_NO_NEW_PRIVS, 1)


def become_user(folders: JobFolders | None) -> bool:
    """Take a user id that no other process has. Return whether this process may do so.

    To open the files of its folder whatever their permissions, a worker keeps the right to read any
    file; `foundation.sandbox.landlock` limits that to the folder.
    """
    if not _may_change_users():
        return False
    user = _FIRST_USER + os.getpid() % _USERS
    try:
        os.setgroups([])
        os.setresgid(user, user, user)
        if folders is not None:
            os.fchown(folders.writable, user, user)
            _control(_PR_SET_KEEPCAPS, 1)
        os.setresuid(user, user, user)
    except OSError:  # as in a namespace with few users
        return False
    if folders is not None:
        _keep(_CAP_DAC_READ_SEARCH)
    return True


def _keep(capabilities: int) -> None:
    """Drop all capabilities but these."""
    header = struct.pack("=Ii", _CAPABILITY_VERSION, 0)
    sets = struct.pack("=6I", capabilities, capabilities, 0, 0, 0, 0)
    if _libc.capset(header, sets) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _may_change_users() -> bool:
    """Return whether this process is root, and its parent can end it after a change of user."""
    if os.geteuid() != 0:
        return False
    held = re.search(r"^CapEff:\s*([0-9a-f]+)$", _STATUS.read_text(), re.MULTILINE)
    return held is not None and int(held[1], 16) & _NEEDED_CAPABILITIES == _NEEDED_CAPABILITIES


def hide() -> None:
    """Let no process of the same account trace this one or read its memory; no core dumps."""
    _control(_PR_SET_DUMPABLE, 0)


def _control(option: int, value: int) -> None:
    # The arguments are unsigned longs, which a plain int of ctypes is not.
    zero = ctypes.c_ulong(0)
    if _prctl(option, ctypes.c_ulong(value), zero, zero, zero) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


_libc = ctypes.CDLL(None, use_errno=True)
_prctl = _libc.prctl
