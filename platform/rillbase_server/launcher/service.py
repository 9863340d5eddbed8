"""The declaration of a service. The supervisor knows nothing else about it."""

import signal
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .account import Account
from .lifecycle import RestartPolicy

# Takes the service's pid; returns None if it is ready, or what is missing. A check returns within
# about a second; the policy's deadline limits how often it is called.
Check = Callable[[int], Awaitable[str | None]]


def nothing_to_prepare() -> None:
    """The default hook: no preparation."""


def nothing_to_repair(_output: str) -> str:
    """The default hook: no repair."""
    return ""


@dataclass(frozen=True)
class ServiceSpec:
    """One supervised program."""

    name: str
    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    # Names of services that must be ready (or done, for one-shots) before this one starts.
    after: tuple[str, ...] = ()
    # None for one-shots: they are done when they exit with 0.
    check: Check | None = None
    # Called periodically once the service is ready, if set. Any response shows that it is alive.
    alive: Check | None = None
    # Called periodically to report problems of a running service.
    condition: Check | None = None
    # Whether the start of the installation waits until the service is ready.
    awaited: bool = True
    # Whether the installation stops if the service fails, or continues without it and retries
    # forever.
    essential: bool = True
    policy: RestartPolicy = field(default_factory=RestartPolicy)
    # Whether a second process waits to take over (``standby.py``).
    has_standby: bool = False
    # Services stop by rising rank; those of one rank stop together.
    stop_rank: int = 0
    stop_signal: signal.Signals = signal.SIGTERM
    account: Account | None = None
    before_start: Callable[[], None] = nothing_to_prepare
    # Takes the last log lines of a failed start; returns what it has repaired, and the start is
    # retried.
    repair: Callable[[str], str] = nothing_to_repair
    # Phrases that make a failed start be retried if they occur in its last log lines.
    transient_failures: tuple[str, ...] = ()
