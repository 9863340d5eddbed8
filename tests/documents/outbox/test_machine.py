"""Histories full of failures, in which ticks never lie and every write comes out.

The second half breaks one rule of the protocol at a time and expects the simulation to notice:
that the rule is needed, and that the simulation would see it missing.
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


def run(seeds: range) -> list[Simulation]:
    """Run one history for each seed; a broken promise names its seed."""
    finished = []
    for seed in seeds:
        simulation = Simulation(seed)
        try:
            simulation.run()
        except Lie as broken:
            raise Lie(f"seed {seed}: {broken}") from broken
        finished.append(simulation)
    return finished


@pytest.mark.parametrize("start", range(0, 5 * BATCH, BATCH))
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
    def begin(incarnation: bytes, look: EventLayerStatus, complete: bool) -> LayerIncarnation:  # noqa: FBT001
        return LayerIncarnation(incarnation, look, complete=True)

    patch.setattr(machine, "LayerIncarnation", begin)


def forget_the_databases_life(patch: pytest.MonkeyPatch) -> None:
    original = machine.incarnation_of

    def without(world: InstallationState, look: EventLayerStatus) -> bytes:
        return original(InstallationState(world.installation, world.epochs, ""), look)

    def learn(relay: RelayMachine, asked: object, reply: RowList, now_s: float) -> object:
        world = InstallationState(reply.world.installation, reply.world.epochs, "")
        relay._world = world
        return listed(relay, asked, RowList(reply.held, world, reply.snapshot, reply.rows), now_s)

    listed: Callable[..., object] = RelayMachine._listed
    patch.setattr(machine, "incarnation_of", without)
    patch.setattr(RelayMachine, "_listed", learn)


def read_by_a_cursor(patch: pytest.MonkeyPatch) -> None:
    original = RelayMachine._learn

    def learn(relay: RelayMachine, life: LayerIncarnation, reply: RowList, now_s: float) -> None:
        original(relay, life, reply, now_s)
        life.watermark = reply.snapshot.xmax

    patch.setattr(RelayMachine, "_learn", learn)


def tick_whatever_is_outstanding(patch: pytest.MonkeyPatch) -> None:
    def provable(
        _: RelayMachine, life: LayerIncarnation, now_s: float
    ) -> TransactionSnapshot | None:
        return life.taken[-1].snapshot if life.taken else None

    patch.setattr(RelayMachine, "_provable", provable)


def take_ticks_meant_for_another_life(patch: pytest.MonkeyPatch) -> None:
    original = Events.tick

    def tick(events: Events, asked: SendTick, now_s: float) -> object:
        asked = SendTick(
            asked.installation,
            asked.stamp_us,
            asked.token,
            events.look(now_s),
            asked.incarnation,
            asked.snapshot,
        )
        return original(events, asked, now_s)

    patch.setattr(Events, "tick", tick)


def let_nobody_go_before_others(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DependencyStack, "put", lambda *_: False)


def take_stamps_of_any_age(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("tests.documents.outbox.simulated_servers.MAX_AGE_S", 1e9)


@pytest.mark.parametrize(
    ("broken_rule", "first_seed"),
    [
        (trust_marks_of_lives_before, 0),
        (forget_the_databases_life, 840),
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
