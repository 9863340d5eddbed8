"""Why a job has no result."""

from __future__ import annotations

import os
import signal
from enum import StrEnum


class FailureReason(StrEnum):
    """Why a job has no result."""

    MEMORY = "memory"
    CPU_TIME = "cpu_time"
    DEADLINE = "deadline"
    TEMPORARY_SPACE = "temporary_space"
    CRASH = "crash"


class JobFailed(Exception):
    """The job exceeded its limits, or its worker crashed."""

    def __init__(self, reason: FailureReason) -> None:
        super().__init__(reason)
        self.reason = reason


def reason_of(status: int) -> FailureReason:
    """Return why a worker that nobody killed has ended with this status of `waitpid`."""
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if number == signal.SIGXCPU:
        return FailureReason.CPU_TIME
    # Only the kernel kills a worker whose reply is awaited, when memory runs out.
    return FailureReason.MEMORY if number == signal.SIGKILL else FailureReason.CRASH
