"""Histories full of failures, in which ticks are always correct and every write is published.

The second half disables one rule of the protocol at a time and expects a violation, which proves
that the rule is needed and that the simulation would detect its absence.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from documents.outbox import machine
from documents.outbox.dependency_stack import DependencyStack
from documents.outbox.entries import TransactionSnapshot
from documents.outbox.events import EventLayerStatus
from documents.outbox.machine import LayerIncarnation, RelayMachine
from documents.outbox.requests import InstallationState, RowList, SendTick
from tests.documents.outbox.simulated_servers import Events
from tests.documents.outbox.simulation import Lie, Simulation

BATCH = 40
#: The first seeds of batches in everyday runs, and of all others.
FEW, MANY = range(0, 2 * BATCH, BATCH), range(2 * BATCH, 5 * BATCH, BATCH)


def run(seeds: range) -> list[Simulation]:
    """Run one history for each seed; a violation names its seed."""
    finished = []
    for seed in seeds:
        simulation = Simulation(seed)
        try:
            simulation.run()
        except Lie as broken:
            raise Lie(f"seed {seed}: {broken}") from broken
        finished.append(simulation)
    return finished


@pytest.mark.parametrize(
    "start", [*FEW, *(pytest.param(start, marks=pytest.mark.long) for start in MANY)]
)
def test_ticks_are_true_and_every_write_is_published(start: int) -> None:
    finished = run(range(start, start + BATCH))
    assert sum(simulation.ticks for simulation in finished) > 50 * BATCH
    assert sum(simulation.written for simulation in finished) > 300 * BATCH
    assert any(simulation.database.emptied for simulation in finished)


def test_a_tick_may_follow_if_only_an_older_version_is_kept() -> None:
    # The slot of the newest version was emptied before that of the first.
    run(range(2_122, 2_123))


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_ticks_are_true_in_thousands_of_histories() -> None:
    finished = run(range(1_000, 6_000))
    assert sum(simulation.written for simulation in finished) > 1_000_000


def trust_marks_of_lives_before(patch: pytest.MonkeyPatch) -> None:
    def begin(incarnation: bytes, status: EventLayerStatus, complete: bool) -> LayerIncarnation:  # noqa: FBT001
        return LayerIncarnation(incarnation, status, complete=True)

    patch.setattr(machine, "LayerIncarnation", begin)


def forget_the_databases_life(patch: pytest.MonkeyPatch) -> None:
    original = machine.incarnation_of

    def without(state: InstallationState, status: EventLayerStatus) -> bytes:
        return original(InstallationState(state.installation, state.epochs, ""), status)

    def learn(relay: RelayMachine, request: object, reply: RowList, now_s: float) -> object:
        state = InstallationState(reply.state.installation, reply.state.epochs, "")
        relay._state = state
        return listed(
            relay, request, RowList(reply.lease_held, state, reply.snapshot, reply.rows), now_s
        )

    listed: Callable[..., object] = RelayMachine._on_rows
    patch.setattr(machine, "incarnation_of", without)
    patch.setattr(RelayMachine, "_on_rows", learn)


def read_by_a_cursor(patch: pytest.MonkeyPatch) -> None:
    original = RelayMachine._note_marks

    def learn(relay: RelayMachine, life: LayerIncarnation, reply: RowList, now_s: float) -> None:
        original(relay, life, reply, now_s)
        life.watermark = reply.snapshot.xmax

    patch.setattr(RelayMachine, "_note_marks", learn)


def tick_whatever_is_outstanding(patch: pytest.MonkeyPatch) -> None:
    def provable(
        _: RelayMachine, life: LayerIncarnation, now_s: float
    ) -> TransactionSnapshot | None:
        return life.snapshots[-1].snapshot if life.snapshots else None

    patch.setattr(RelayMachine, "_provable", provable)


def take_ticks_meant_for_another_life(patch: pytest.MonkeyPatch) -> None:
    original = Events.tick

    def tick(events: Events, request: SendTick, now_s: float) -> object:
        request = SendTick(
            request.installation,
            request.stamp_us,
            request.token,
            events.read_status(now_s),
            request.incarnation,
            request.snapshot,
        )
        return original(events, request, now_s)

    patch.setattr(Events, "tick", tick)


def let_nobody_go_before_others(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DependencyStack, "push", lambda *_: False)


def take_stamps_of_any_age(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("tests.documents.outbox.simulated_servers.MAX_AGE_S", 1e9)


@pytest.mark.parametrize(
    ("broken_rule", "first_seed"),
    [
        (trust_marks_of_lives_before, 0),
        (forget_the_databases_life, 1_030),
        (read_by_a_cursor, 0),
        (tick_whatever_is_outstanding, 0),
        (take_ticks_meant_for_another_life, 0),
        (take_stamps_of_any_age, 0),
        (let_nobody_go_before_others, 0),
    ],
)
def test_the_simulation_detects_the_absence_of_any_single_rule(
    broken_rule: Callable[[pytest.MonkeyPatch], None],
    first_seed: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken_rule(monkeypatch)
    with pytest.raises(Lie):
        run(range(first_seed, first_seed + 400))
