"""The system calls of a worker: memory, threads, time, and the files that it received.

All others fail with EPERM. A worker whose decoder is taken over by its input opens no file, makes
no connection, starts no program, and signals or traces no other process of its account, such as
the one that forked it and knows secrets. A worker with folders may open and remove files too;
`foundation.sandbox.landlock` decides which.

The filter is a program of the kernel's packet filter, see seccomp(2). It knows the numbers of
x86-64; on other architectures, and where the kernel refuses it, workers run without.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Sequence

_PR_SET_SECCOMP, _MODE_FILTER = 22, 2
_ARCHITECTURE = 0xC000003E
#: Where the call's number, the architecture and the arguments lie in what the filter reads.
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENT_AT = 0, 4, 16
_LOAD, _JUMP_IF_EQUAL, _JUMP_IF_SET, _RETURN = 0x20, 0x15, 0x45, 0x06
_INSTRUCTION = struct.Struct("HBBI")
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_EPERM, _ENOSYS = 1, 38
_CLONE, _CLONE3, _CLONE_THREAD = 56, 435, 0x00010000
_PRCTL, _PR_SET_NAME = 157, 15
_TGKILL = 234

#: Grouped by purpose. The most frequent come first, because they are compared in this order.
_ALLOWED = (
    # Threads and time: futex, clock_gettime, clock_getres, clock_nanosleep, nanosleep, gettimeofday
    *(202, 228, 229, 230, 35, 96),
    # sched_yield, sched_getaffinity, gettid, getpid, getppid, set_robust_list, set_tid_address
    *(24, 204, 186, 39, 110, 273, 218),
    # rseq, membarrier, getcpu, arch_prctl, restart_syscall, exit, exit_group
    *(334, 324, 309, 158, 219, 60, 231),
    # Signals: rt_sigaction, rt_sigprocmask, rt_sigreturn, sigaltstack
    *(13, 14, 15, 131),
    # Memory: mmap, munmap, mprotect, mremap, madvise, mincore, brk
    *(9, 11, 10, 25, 28, 27, 12),
    # Open files: read, write, pread64, pwrite64, readv, writev, lseek, fstat, close
    *(0, 1, 17, 18, 19, 20, 8, 5, 3),
    # newfstatat, with which the C library implements fstat; of other files it reveals only metadata
    262,
    # dup, dup2, dup3, fcntl, ioctl, ftruncate, fallocate, fsync, fdatasync, poll, ppoll
    *(32, 33, 292, 72, 16, 77, 285, 74, 75, 7, 271),
    # The job's socket: sendto, recvfrom, sendmsg, recvmsg, shutdown; pipe2, eventfd2
    *(44, 45, 46, 47, 48, 293, 290),
    # Process information: uname, sysinfo, getrusage, times, getuid, getgid, geteuid, getegid
    *(63, 99, 98, 100, 102, 104, 107, 108),
    # getrandom
    318,
)
#: For workers with folders.
_WITH_FOLDERS = (
    # openat, stat, lstat, statx, access, faccessat, faccessat2, readlink, readlinkat, getcwd
    *(257, 4, 6, 332, 21, 269, 439, 89, 267, 79),
    # unlink, unlinkat, getdents64, statfs, fstatfs, fadvise64
    *(87, 263, 217, 137, 138, 221),
)


def restrict(*, with_folders: bool) -> bool:
    """Restrict this process to these system calls. Return whether the kernel supports that."""
    if platform.machine() != "x86_64":
        return False
    allowed = (*_ALLOWED, *_WITH_FOLDERS) if with_folders else _ALLOWED
    instructions = _program(os.getpid(), allowed)
    code = ctypes.create_string_buffer(instructions, len(instructions))
    count = len(instructions) // _INSTRUCTION.size
    program = _Program(count, ctypes.cast(code, ctypes.c_void_p))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    return bool(prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program)) == 0)


class _Program(ctypes.Structure):
    _fields_ = (("count", ctypes.c_ushort), ("code", ctypes.c_void_p))


def _program(pid: int, allowed: Sequence[int]) -> bytes:
    """Return the filter of the process `pid`."""
    checks = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_JUMP_IF_EQUAL, 1, 0, _ARCHITECTURE),
        (_RETURN, 0, 0, _FAIL | _EPERM),
        (_LOAD, 0, 0, _NUMBER_AT),
        # The C library falls back to clone, whose flags the filter can examine.
        *_when(_CLONE3, [(_RETURN, 0, 0, _FAIL | _ENOSYS)]),
        *_when_argument(_CLONE, (_JUMP_IF_SET, _CLONE_THREAD)),
        *_when_argument(_PRCTL, (_JUMP_IF_EQUAL, _PR_SET_NAME)),
        # How abort(3) ends the process.
        *_when_argument(_TGKILL, (_JUMP_IF_EQUAL, pid)),
    ]
    remaining = len(allowed)
    checks += [(_JUMP_IF_EQUAL, remaining - i, 0, number) for i, number in enumerate(allowed)]
    checks += [(_RETURN, 0, 0, _FAIL | _EPERM), (_RETURN, 0, 0, _ALLOW)]
    return b"".join(_INSTRUCTION.pack(*check) for check in checks)


_Check = tuple[int, int, int, int]


def _when(number: int, then: list[_Check]) -> list[_Check]:
    """Return the instructions that decide one call and are skipped for others."""
    return [(_JUMP_IF_EQUAL, 0, len(then), number), *then]


def _when_argument(number: int, test: tuple[int, int]) -> list[_Check]:
    """Allow a call if its first argument passes a test."""
    code, value = test
    return _when(
        number,
        [
            (_LOAD, 0, 0, _ARGUMENT_AT),
            (code, 0, 1, value),
            (_RETURN, 0, 0, _ALLOW),
            (_RETURN, 0, 0, _FAIL | _EPERM),
        ],
    )
