"""Starts child processes that do not outlive the launcher.

Every child leads its own session, so Ctrl-C in the terminal reaches only the launcher, which
decides the order of the shutdown, and a child and its descendants can be signalled by one group id.
On Linux, the kernel also sends the child's stop signal if the launcher dies (``PR_SET_PDEATHSIG``).
That depends on the *thread* that started the child, and the hook below runs between fork and exec:
therefore, children are started only from the launcher's main thread.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from .account import Account

PR_SET_PDEATHSIG = 1
FAMILY_EXIT_TIMEOUT_S, FAMILY_POLL_S = 1.0, 0.002
KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "HOME", "LD_LIBRARY_PATH")

Output = IO[bytes] | int


def spawn(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    output: Output,
    account: Account | None = None,
    death_signal: signal.Signals = signal.SIGTERM,
    stdin: int = subprocess.DEVNULL,
) -> subprocess.Popen[bytes]:
    """Start ``argv`` in its own session, with both output streams redirected to ``output``."""
    return subprocess.Popen(
        argv,
        cwd=cwd,
        env=dict(env),
        stdin=stdin,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=[] if account else None,
        preexec_fn=_die_with_parent(death_signal),  # noqa: PLW1509 - one thread, see above
    )


def server_environment() -> dict[str, str]:
    """The environment of a third-party server (PostgreSQL, Valkey), without secrets."""
    inherited = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    return inherited | {"LC_ALL": "C.UTF-8"}


def end_family(leader_pid: int) -> None:
    """Kill the rest of a process group, and wait until it has exited.

    The kernel kills asynchronously, and ports and files must be free for the successor. A process
    that remains (until init reaps it) is awaited only briefly.
    """
    deadline_s = time.monotonic() + FAMILY_EXIT_TIMEOUT_S
    while time.monotonic() < deadline_s:
        try:
            os.killpg(leader_pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        time.sleep(FAMILY_POLL_S)


def _die_with_parent(death_signal: signal.Signals) -> Callable[[], None] | None:
    if not sys.platform.startswith("linux"):
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    parent = os.getpid()

    def arrange() -> None:
        prctl(PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0)
        if os.getppid() != parent:  # the launcher died before the line above took effect
            os._exit(1)

    return arrange
