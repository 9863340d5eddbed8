"""The declaration of a service. The supervisor knows nothing else about it."""

import signal
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .account import Account
from .lifecycle import RestartPolicy

# Takes the service's pid; returns None if it is ready, or else what is missing. A check returns
# within about a second; the policy's deadline bounds how often it is asked.
Check = Callable[[int], Awaitable[str | None]]


def nothing_to_prepare() -> None:
    """The hook of services that need no preparation."""


def nothing_to_repair(_said: str) -> str:
    """The hook of services that do not repair themselves."""
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
    # Asked repeatedly once it is ready; None: never asked. Any answer shows that it is alive.
    alive: Check | None = None
    # Asked from time to time: what is amiss with a service that lives.
    condition: Check | None = None
    # Whether the start as a whole waits until it is ready. What is not needed at once may follow.
    awaited: bool = True
    # Whether the installation ends when it gives up, or continues without it and retries forever.
    essential: bool = True
    policy: RestartPolicy = field(default_factory=RestartPolicy)
    # Services stop by rising rank; those of one rank stop together.
    stop_rank: int = 0
    stop_signal: signal.Signals = signal.SIGTERM
    account: Account | None = None
    before_start: Callable[[], None] = nothing_to_prepare
    # Takes the last log lines of a failed start; returns what it has repaired, and the start is
    # retried.
    repair: Callable[[str], str] = nothing_to_repair
    # Phrases in the last log lines that make a failed start worth another try.
    transient_failures: tuple[str, ...] = ()
