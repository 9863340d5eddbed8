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
class Story:
    """A service whose clock the test turns."""

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


def started(policy: RestartPolicy = POLICY) -> Story:
    story = Story(policy)
    assert story.on(PrerequisitesReady()) == (ServiceEffect.SPAWN,)
    return story


def ready() -> Story:
    story = started()
    story.on(BecameReady(), after_s=1)
    return story


def test_a_service_becomes_ready_and_stops_when_asked() -> None:
    story = ready()
    assert story.is_at(ServiceState.READY)
    assert story.on(StopRequested()) == (ServiceEffect.SIGNAL_STOP,)
    assert story.is_at(ServiceState.STOPPING)
    story.on(ProcessExited(0), after_s=1)
    assert story.is_at(ServiceState.STOPPED)


def test_a_service_that_ignores_its_stop_signal_is_killed_after_its_grace_period() -> None:
    story = ready()
    story.on(StopRequested())
    assert story.until_timer() == (ServiceEffect.KILL,)
    assert story.now == 1 + POLICY.stop_grace_s
    story.on(ProcessExited(-9))
    assert story.is_at(ServiceState.STOPPED)


def test_a_forced_stop_kills_immediately_even_during_an_orderly_one() -> None:
    story = ready()
    story.on(StopRequested())
    assert story.on(StopRequested(force=True)) == (ServiceEffect.KILL,)


def test_a_service_that_dies_before_it_was_ever_ready_has_failed() -> None:
    story = started()
    assert story.on(ProcessExited(3)) == ()
    assert story.is_at(ServiceState.FAILED)
    assert story.life.reason == "exited with code 3"


def test_a_start_that_fails_on_leftovers_of_a_killed_server_is_retried() -> None:
    story = started()
    story.on(ProcessExited(1, transient=True))
    assert story.is_at(ServiceState.BACKING_OFF)
    assert story.until_timer() == (ServiceEffect.SPAWN,)
    story.on(BecameReady())
    assert story.is_at(ServiceState.READY)


def test_a_service_that_is_not_ready_in_time_is_killed_and_has_failed() -> None:
    story = started()
    assert story.until_timer() == (ServiceEffect.KILL,)
    story.on(ProcessExited(-9))
    assert story.is_at(ServiceState.FAILED)
    assert story.life.reason == "not ready within 30 s"


def test_restarts_back_off_exponentially_up_to_a_cap_and_end_for_good() -> None:
    story = ready()
    pauses = []
    for _ in range(POLICY.max_failures):
        story.on(ProcessExited(1))
        assert story.life.wake_at is not None
        pauses.append(story.life.wake_at - story.now)
        story.until_timer()
        story.on(BecameReady())
    assert pauses == [1, 2, 4, 8, 8]
    story.on(ProcessExited(1))
    assert story.is_at(ServiceState.FAILED)
    assert story.life.restarts == POLICY.max_failures


def test_failures_are_forgotten_once_a_service_has_been_stable() -> None:
    story = ready()
    for _ in range(3 * POLICY.max_failures):
        story.on(ProcessExited(1), after_s=POLICY.stable_after_s)
        assert story.life.wake_at == story.now + POLICY.first_delay_s
        story.until_timer()
        story.on(BecameReady())


def test_a_one_shot_succeeds_with_code_0_and_fails_with_any_other() -> None:
    story = started(ONE_SHOT)
    story.on(ProcessExited(0))
    assert story.is_at(ServiceState.DONE)
    story = started(ONE_SHOT)
    story.on(ProcessExited(1))
    assert story.is_at(ServiceState.FAILED)


def test_a_service_that_waits_for_its_next_try_stops_without_a_signal() -> None:
    story = ready()
    story.on(ProcessExited(1))
    assert story.on(StopRequested()) == ()
    assert story.is_at(ServiceState.STOPPED)


@pytest.mark.parametrize("event", [BecameReady(), ProcessExited(0), ServiceHung(15), TimerFired()])
def test_impossible_events_are_rejected(event: Event) -> None:
    with pytest.raises(IllegalMove):
        Story().on(event)


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
    story = Story(RestartPolicy(one_shot=one_shot))
    processes = 0
    for event, after_s in events:
        before = story.life.state
        try:
            effects = story.on(event, after_s)
        except IllegalMove:
            assert story.life.state is before
            continue
        processes += effects.count(ServiceEffect.SPAWN) - isinstance(event, ProcessExited)
        assert story.life.state is before or story.life.state in MOVES[before]
        resting = story.life.state in AT_REST or story.life.state is ServiceState.BACKING_OFF
        assert processes == (0 if resting else 1)
        # Whoever waits for something has a timer, unless the kill is already out.
        assert story.life.wake_at is not None or story.life.state is not ServiceState.BACKING_OFF


@given(st.integers(1, 10_000))
def test_pauses_never_exceed_their_cap(failures: int) -> None:
    assert 0 < POLICY.delay_s(failures) <= POLICY.max_delay_s


def test_a_hung_service_is_killed_and_restarted() -> None:
    story = ready()
    assert story.on(ServiceHung(15.2), after_s=100) == (ServiceEffect.KILL,)
    story.on(ProcessExited(-9))
    assert story.is_at(ServiceState.BACKING_OFF)
    assert story.life.reason == "did not respond for 15 s"
    assert story.until_timer() == (ServiceEffect.SPAWN,)
