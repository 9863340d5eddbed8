"""Confines a worker before it reads its first byte.

It dies with the process that forked it, is the first to be killed when the machine or the container
runs out of memory, runs at the lowest CPU priority, cannot gain privileges, and cannot be traced or
leave a core dump. Its system calls are restricted in `foundation.sandbox.system_calls`.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from pathlib import Path

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38
_OOM_SCORE = Path("/proc/self/oom_score_adj")
_FIRST_TO_GO = "1000"
#: Decoding uses all the CPU time that it gets; requests take precedence.
_NICEST = 19


def confine(parent_pid: int) -> None:
    """Give up what a worker does not need. `parent_pid` is the process that forked it."""
    with contextlib.suppress(OSError):  # where /proc is read-only, the other limits still hold
        _OOM_SCORE.write_text(_FIRST_TO_GO)
    _control(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:  # the parent ended before the line above took effect
        os._exit(1)
    os.nice(_NICEST)
    hide()
    _control(_PR_SET_NO_NEW_PRIVS, 1)


def hide() -> None:
    """Let no process of the same account trace this one or read its memory; no core dumps."""
    _control(_PR_SET_DUMPABLE, 0)


def _control(option: int, value: int) -> None:
    # The arguments are unsigned longs, which a plain int of ctypes is not.
    zero = ctypes.c_ulong(0)
    if _prctl(option, ctypes.c_ulong(value), zero, zero, zero) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


_prctl = ctypes.CDLL(None, use_errno=True).prctl
