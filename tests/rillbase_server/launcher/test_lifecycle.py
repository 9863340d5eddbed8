"""The life of a service on a virtual clock."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rillbase_server.launcher.lifecycle import (
    AT_REST,
    MOVES,
    BecameReady,
    Event,
    IllegalMove,
    Lifecycle,
    PrerequisitesReady,
    ProcessExited,
    RestartPolicy,
    ServiceEffect,
    ServiceHung,
    ServiceState,
    StopRequested,
    TimerFired,
    advance,
)

POLICY = RestartPolicy(
    start_deadline_s=30,
    stop_grace_s=10,
    first_delay_s=1,
    max_delay_s=8,
    max_failures=5,
    stable_after_s=60,
)
ONE_SHOT = RestartPolicy(one_shot=True, start_deadline_s=30)


@dataclass
class LifecycleScenario:
    """A service on a virtual clock."""

    policy: RestartPolicy = POLICY
    life: Lifecycle = field(default_factory=Lifecycle)
    now: float = 0.0

    def on(self, event: Event, after_s: float = 0.0) -> tuple[ServiceEffect, ...]:
        self.now += after_s
        self.life, effects = advance(self.policy, self.life, event, self.now)
        return effects

    def is_at(self, state: ServiceState) -> bool:
        return self.life.state is state

    def until_timer(self) -> tuple[ServiceEffect, ...]:
        assert self.life.wake_at is not None
        return self.on(TimerFired(), after_s=self.life.wake_at - self.now)


def started(policy: RestartPolicy = POLICY) -> LifecycleScenario:
    scenario = LifecycleScenario(policy)
    assert scenario.on(PrerequisitesReady()) == (ServiceEffect.SPAWN,)
    return scenario


def ready() -> LifecycleScenario:
    scenario = started()
    scenario.on(BecameReady(), after_s=1)
    return scenario


def test_a_service_becomes_ready_and_stops_when_asked() -> None:
    scenario = ready()
    assert scenario.is_at(ServiceState.READY)
    assert scenario.on(StopRequested()) == (ServiceEffect.SIGNAL_STOP,)
    assert scenario.is_at(ServiceState.STOPPING)
    scenario.on(ProcessExited(0), after_s=1)
    assert scenario.is_at(ServiceState.STOPPED)


def test_a_service_that_ignores_its_stop_signal_is_killed_after_its_grace_period() -> None:
    scenario = ready()
    scenario.on(StopRequested())
    assert scenario.until_timer() == (ServiceEffect.KILL,)
    assert scenario.now == 1 + POLICY.stop_grace_s
    scenario.on(ProcessExited(-9))
    assert scenario.is_at(ServiceState.STOPPED)


def test_a_forced_stop_kills_immediately_even_during_an_orderly_one() -> None:
    scenario = ready()
    scenario.on(StopRequested())
    assert scenario.on(StopRequested(force=True)) == (ServiceEffect.KILL,)


def test_a_service_that_dies_before_it_was_ever_ready_has_failed() -> None:
    scenario = started()
    assert scenario.on(ProcessExited(3)) == ()
    assert scenario.is_at(ServiceState.FAILED)
    assert scenario.life.reason == "exited with code 3"


def test_a_start_that_fails_on_leftovers_of_a_killed_server_is_retried() -> None:
    scenario = started()
    scenario.on(ProcessExited(1, transient=True))
    assert scenario.is_at(ServiceState.BACKING_OFF)
    assert scenario.until_timer() == (ServiceEffect.SPAWN,)
    scenario.on(BecameReady())
    assert scenario.is_at(ServiceState.READY)


def test_a_service_that_is_not_ready_in_time_is_killed_and_has_failed() -> None:
    scenario = started()
    assert scenario.until_timer() == (ServiceEffect.KILL,)
    scenario.on(ProcessExited(-9))
    assert scenario.is_at(ServiceState.FAILED)
    assert scenario.life.reason == "not ready within 30 s"


def test_restarts_back_off_exponentially_up_to_a_cap_and_end_for_good() -> None:
    scenario = ready()
    pauses = []
    for _ in range(POLICY.max_failures):
        scenario.on(ProcessExited(1))
        assert scenario.life.wake_at is not None
        pauses.append(scenario.life.wake_at - scenario.now)
        scenario.until_timer()
        scenario.on(BecameReady())
    assert pauses == [1, 2, 4, 8, 8]
    scenario.on(ProcessExited(1))
    assert scenario.is_at(ServiceState.FAILED)
    assert scenario.life.restarts == POLICY.max_failures


def test_failures_are_forgotten_once_a_service_has_been_stable() -> None:
    scenario = ready()
    for _ in range(3 * POLICY.max_failures):
        scenario.on(ProcessExited(1), after_s=POLICY.stable_after_s)
        assert scenario.life.wake_at == scenario.now + POLICY.first_delay_s
        scenario.until_timer()
        scenario.on(BecameReady())


def test_a_one_shot_succeeds_with_code_0_and_fails_with_any_other() -> None:
    scenario = started(ONE_SHOT)
    scenario.on(ProcessExited(0))
    assert scenario.is_at(ServiceState.DONE)
    scenario = started(ONE_SHOT)
    scenario.on(ProcessExited(1))
    assert scenario.is_at(ServiceState.FAILED)


def test_a_service_that_waits_for_its_next_try_stops_without_a_signal() -> None:
    scenario = ready()
    scenario.on(ProcessExited(1))
    assert scenario.on(StopRequested()) == ()
    assert scenario.is_at(ServiceState.STOPPED)


@pytest.mark.parametrize("event", [BecameReady(), ProcessExited(0), ServiceHung(15), TimerFired()])
def test_impossible_events_are_rejected(event: Event) -> None:
    with pytest.raises(IllegalMove):
        LifecycleScenario().on(event)


EVENTS = st.one_of(
    st.just(PrerequisitesReady()),
    st.just(BecameReady()),
    st.just(ServiceHung(15)),
    st.builds(ProcessExited, st.integers(-15, 3), st.booleans()),
    st.just(TimerFired()),
    st.builds(StopRequested, st.booleans()),
)


@given(st.lists(st.tuples(EVENTS, st.floats(0, 100)), max_size=60), st.booleans())
def test_every_transition_is_legal_and_every_process_is_accounted_for(
    events: list[tuple[Event, float]],
    one_shot: bool,  # noqa: FBT001 - drawn by hypothesis
) -> None:
    scenario = LifecycleScenario(RestartPolicy(one_shot=one_shot))
    processes = 0
    for event, after_s in events:
        before = scenario.life.state
        try:
            effects = scenario.on(event, after_s)
        except IllegalMove:
            assert scenario.life.state is before
            continue
        processes += effects.count(ServiceEffect.SPAWN) - isinstance(event, ProcessExited)
        assert scenario.life.state is before or scenario.life.state in MOVES[before]
        resting = scenario.life.state in AT_REST or scenario.life.state is ServiceState.BACKING_OFF
        assert processes == (0 if resting else 1)
        # Every wait has a timer, unless the kill signal was already sent.
        assert (
            scenario.life.wake_at is not None or scenario.life.state is not ServiceState.BACKING_OFF
        )


@given(st.integers(1, 10_000))
def test_pauses_never_exceed_their_cap(failures: int) -> None:
    assert 0 < POLICY.delay_s(failures) <= POLICY.max_delay_s


def test_a_hung_service_is_killed_and_restarted() -> None:
    scenario = ready()
    assert scenario.on(ServiceHung(15.2), after_s=100) == (ServiceEffect.KILL,)
    scenario.on(ProcessExited(-9))
    assert scenario.is_at(ServiceState.BACKING_OFF)
    assert scenario.life.reason == "did not respond for 15 s"
    assert scenario.until_timer() == (ServiceEffect.SPAWN,)
