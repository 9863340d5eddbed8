"""What one job may use.

The kernel enforces everything but the deadline, which the pool enforces.
"""

from __future__ import annotations

import resource
from dataclasses import dataclass
from pathlib import Path

from foundation.sandbox.messages import MAX_FILES

#: The descriptors that a worker has beside the files of its request: 0 to 2, its socket, and its
#: folders.
OWN_FILES = 6
_STATM = Path("/proc/self/statm")


@dataclass(frozen=True, slots=True)
class JobLimits:
    """The resources of one job."""

    #: Address space beyond what the process has when it starts.
    memory_bytes: int
    #: CPU time of all its threads.
    cpu_s: int
    #: Wall-clock time, from the fork to the reply.
    deadline_s: float
    #: The size of each file that it writes.
    file_bytes: int
    #: How many files it may have open, beside its own.
    open_files: int = MAX_FILES


def impose(limits: JobLimits) -> None:
    """Limit this process permanently."""
    address_space = _address_space_bytes() + limits.memory_bytes
    _set(resource.RLIMIT_AS, address_space)
    # The signal of the soft limit ends the process; it cannot ignore that of the hard limit.
    resource.setrlimit(resource.RLIMIT_CPU, (limits.cpu_s, limits.cpu_s + 1))
    _set(resource.RLIMIT_FSIZE, limits.file_bytes)
    _set(resource.RLIMIT_NOFILE, OWN_FILES + limits.open_files)
    _set(resource.RLIMIT_CORE, 0)


def _set(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (bound, bound))


def _address_space_bytes() -> int:
    return int(_STATM.read_text().split()[0]) * resource.getpagesize()
