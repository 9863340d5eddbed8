"""Profiles a Python process's CPU time by sampling its stacks with py-spy."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

#: A prime number, so that sampling does not synchronise with timers.
RATE_PER_S = 199
#: Threads waiting in these functions are idle; py-spy considers some of them running.
_WAITS = ("Condition.wait (threading.py:", "_worker (concurrent/futures/thread.py:")
_MISSING = "py-spy is not installed: `pip install py-spy` into any environment that is on the PATH."


@dataclass(frozen=True, slots=True)
class Sampling:
    """The sampled process, and the file for its stacks."""

    pid: int
    path: Path


@dataclass(frozen=True, slots=True)
class Function:
    """A function's share in a profile, of all samples."""

    name: str
    #: While the function itself ran, and including its callees.
    own: float
    total: float


def program() -> str:
    """Return the path of py-spy."""
    beside = Path(sys.executable).with_name("py-spy")
    path = str(beside) if beside.exists() else shutil.which("py-spy")
    if path is None:
        raise SystemExit(_MISSING)
    return path


@asynccontextmanager
async def sampled(sampling: Sampling | None) -> AsyncIterator[None]:
    """Sample while the block runs; then write one line for each stack, with its count."""
    if sampling is None:
        yield
        return
    what = ["--pid", str(sampling.pid), "--rate", str(RATE_PER_S), "--function"]
    where = ["--format", "raw", "--output", str(sampling.path)]
    quiet = asyncio.subprocess.DEVNULL
    spy = await asyncio.create_subprocess_exec(
        program(), "record", *what, *where, stdout=quiet, stderr=asyncio.subprocess.PIPE
    )
    try:
        yield
    finally:
        if spy.returncode is None:
            os.kill(spy.pid, signal.SIGINT)
        _, output = await spy.communicate()
    if spy.returncode:
        raise RuntimeError(f"py-spy failed (it needs ptrace): {output.decode()[-1000:]}")


def functions(stacks: str) -> list[Function]:
    """Return the functions in a profile's stacks, ordered by their own share.

    Code without Python frames, of uvloop or Rust, counts for the function that called it.
    """
    own: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for line in stacks.splitlines():
        stack, _, count = line.rpartition(" ")
        frames = stack.split(";")
        if frames[-1].startswith(_WAITS):
            continue
        own[frames[-1]] += int(count)
        total.update(dict.fromkeys(frames, int(count)))
    samples = max(1, own.total())
    return [
        Function(name, own[name] / samples, total[name] / samples)
        for name in sorted(total, key=lambda name: (own[name], total[name]), reverse=True)
    ]
