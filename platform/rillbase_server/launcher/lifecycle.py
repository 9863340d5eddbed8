"""The lifecycle of one service, as a pure function.

``advance`` takes the state of a service, an event and the time, and returns the new state and the
actions. It starts no process and reads no clock, so tests use a virtual one.

::

    declared ─▶ starting ─▶ ready ──────▶ stopping ─▶ stopped
                 │  ▲  └──▶ done (one-shot)  ▲
                 │  └─ backing off ◀─ ready  │       failed: it gave up
                 └──────▶ failed             └─ starting

A ready service that hangs is killed, and handled as if it had exited by itself. A stop is possible
in every state. Other transitions are bugs and raise ``IllegalMove``.
"""

from dataclasses import dataclass, replace
from enum import Enum, StrEnum, auto


class ServiceState(StrEnum):
    """The state of a service; the values are shown to users."""

    DECLARED = "declared"
    STARTING = "starting"
    READY = "ready"
    BACKING_OFF = "backing off"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILED = "failed"
    DONE = "done"


MOVES: dict[ServiceState, frozenset[ServiceState]] = {
    ServiceState.DECLARED: frozenset({ServiceState.STARTING, ServiceState.STOPPED}),
    ServiceState.STARTING: frozenset(
        {
            ServiceState.READY,
            ServiceState.DONE,
            ServiceState.BACKING_OFF,
            ServiceState.STOPPING,
            ServiceState.FAILED,
        }
    ),
    ServiceState.READY: frozenset(
        {ServiceState.BACKING_OFF, ServiceState.STOPPING, ServiceState.FAILED}
    ),
    ServiceState.BACKING_OFF: frozenset({ServiceState.STARTING, ServiceState.STOPPED}),
    ServiceState.STOPPING: frozenset({ServiceState.STOPPED}),
    ServiceState.STOPPED: frozenset(),
    ServiceState.FAILED: frozenset(),
    ServiceState.DONE: frozenset(),
}
WITH_PROCESS = frozenset({ServiceState.STARTING, ServiceState.READY, ServiceState.STOPPING})
AT_REST = frozenset(
    {ServiceState.DECLARED, ServiceState.STOPPED, ServiceState.FAILED, ServiceState.DONE}
)


class IllegalMove(Exception):
    """An event that cannot happen in the current state."""


@dataclass(frozen=True)
class RestartPolicy:
    """Deadlines and retries of a service. All durations are in seconds."""

    one_shot: bool = False
    start_deadline_s: float = 30.0
    stop_grace_s: float = 10.0
    first_delay_s: float = 0.5
    delay_factor: float = 2.0
    max_delay_s: float = 30.0
    # Consecutive failures after which the start is retried; the next one is final.
    max_failures: int = 8
    # After being ready for this long, a service has recovered, and its failures are reset.
    stable_after_s: float = 60.0
    # A ready service that does not respond for this long is killed.
    hung_after_s: float = 8.0

    def delay_s(self, failures: int) -> float:
        """Return the pause before the retry after this number of consecutive failures."""
        # The exponent is bounded to avoid a float overflow.
        exponent = min(failures - 1, 32)
        return min(self.max_delay_s, self.first_delay_s * self.delay_factor**exponent)


@dataclass(frozen=True)
class Lifecycle:
    """The state of a service, since when, and when its timer fires."""

    state: ServiceState = ServiceState.DECLARED
    since: float = 0.0
    wake_at: float | None = None
    failures: int = 0
    restarts: int = 0
    was_ready: bool = False
    exit_code: int | None = None
    reason: str = ""


@dataclass(frozen=True)
class PrerequisitesReady:
    """The services that it needs are ready."""


@dataclass(frozen=True)
class BecameReady:
    """The readiness check passed."""


@dataclass(frozen=True)
class ProcessExited:
    """The process exited; ``transient`` if its last output suggests that a retry may succeed.

    ``retry_forever`` if it is retried however often it has failed: giving up would stop the other
    services, which can continue without it for a while.
    """

    code: int
    transient: bool = False
    retry_forever: bool = False


@dataclass(frozen=True)
class ServiceHung:
    """The service was ready and no longer responds."""

    silent_s: float


@dataclass(frozen=True)
class TimerFired:
    """The time ``wake_at`` has come."""


@dataclass(frozen=True)
class StopRequested:
    """The service should stop gracefully, or immediately with ``force``."""

    force: bool = False


Event = PrerequisitesReady | BecameReady | ProcessExited | ServiceHung | TimerFired | StopRequested


class ServiceEffect(Enum):
    """The actions after a step."""

    SPAWN = auto()
    SIGNAL_STOP = auto()
    KILL = auto()


Step = tuple[Lifecycle, tuple[ServiceEffect, ...]]


def advance(policy: RestartPolicy, life: Lifecycle, event: Event, now: float) -> Step:
    """Return the state and the actions after an event."""
    match event:
        case PrerequisitesReady():
            _require(life, event, ServiceState.DECLARED)
            return _spawn(policy, life, now)
        case BecameReady():
            _require(life, event, ServiceState.STARTING)
            ready = _move(life, ServiceState.READY, now)
            return replace(ready, was_ready=True, reason=""), ()
        case ProcessExited():
            _require(life, event, *WITH_PROCESS)
            return _on_exit(policy, life, event, now)
        case ServiceHung():
            _require(life, event, ServiceState.READY)
            return replace(life, reason=f"did not respond for {event.silent_s:.0f} s"), (
                ServiceEffect.KILL,
            )
        case TimerFired():
            _require(
                life, event, ServiceState.STARTING, ServiceState.BACKING_OFF, ServiceState.STOPPING
            )
            return _timer_fired(policy, life, now)
        case StopRequested():
            return _stop(policy, life, event, now)


def _spawn(policy: RestartPolicy, life: Lifecycle, now: float) -> Step:
    starting = _move(life, ServiceState.STARTING, now)
    return replace(starting, wake_at=now + policy.start_deadline_s), (ServiceEffect.SPAWN,)


def _on_exit(policy: RestartPolicy, life: Lifecycle, event: ProcessExited, now: float) -> Step:
    life = replace(life, exit_code=event.code)
    if life.state is ServiceState.STOPPING:
        return _move(life, ServiceState.STOPPED, now), ()
    if policy.one_shot and event.code == 0:
        return _move(life, ServiceState.DONE, now), ()
    recovered = life.state is ServiceState.READY and now - life.since >= policy.stable_after_s
    failures = 1 if recovered else life.failures + 1
    life = replace(life, failures=failures, reason=life.reason or _exit_text(event.code))
    may_retry = event.transient or (life.was_ready and not policy.one_shot)
    gives_up = not may_retry or failures > policy.max_failures
    if gives_up and not event.retry_forever:
        return _move(life, ServiceState.FAILED, now), ()
    backing_off = _move(life, ServiceState.BACKING_OFF, now)
    return replace(backing_off, wake_at=now + policy.delay_s(failures)), ()


def _timer_fired(policy: RestartPolicy, life: Lifecycle, now: float) -> Step:
    if life.state is ServiceState.BACKING_OFF:
        restarting = replace(life, restarts=life.restarts + 1, reason="")
        return _spawn(policy, restarting, now)
    if life.state is ServiceState.STARTING:
        late = f"not ready within {policy.start_deadline_s:g} s"
        return replace(life, wake_at=None, reason=late), (ServiceEffect.KILL,)
    return replace(life, wake_at=None, reason="killed after the grace period"), (
        ServiceEffect.KILL,
    )


def _stop(policy: RestartPolicy, life: Lifecycle, event: StopRequested, now: float) -> Step:
    if life.state in (ServiceState.DECLARED, ServiceState.BACKING_OFF):
        return _move(life, ServiceState.STOPPED, now), ()
    if life.state not in WITH_PROCESS:
        return life, ()
    if event.force:
        stopping = (
            life if life.state is ServiceState.STOPPING else _move(life, ServiceState.STOPPING, now)
        )
        return replace(stopping, wake_at=None), (ServiceEffect.KILL,)
    if life.state is ServiceState.STOPPING:
        return life, ()
    stopping = _move(life, ServiceState.STOPPING, now)
    return replace(stopping, wake_at=now + policy.stop_grace_s), (ServiceEffect.SIGNAL_STOP,)


def _move(life: Lifecycle, state: ServiceState, now: float) -> Lifecycle:
    if state not in MOVES[life.state]:
        raise IllegalMove(f"{life.state} → {state}")
    return replace(life, state=state, since=now, wake_at=None)


def _require(life: Lifecycle, event: Event, *states: ServiceState) -> None:
    if life.state not in states:
        raise IllegalMove(f"{type(event).__name__} while {life.state}")


def _exit_text(code: int) -> str:
    return f"killed by signal {-code}" if code < 0 else f"exited with code {code}"
