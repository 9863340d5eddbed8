"""The feed of native collections, in a simulation with faults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from documents.outbox.events import AppendResult, EventLayerStatus
from documents.outbox.feed.publisher import FeedCursor, FeedPublisher, NodeLogStatus
from tests.documents.outbox.feed_simulation import (
    FeedSimulation,
    SimulatedServers,
    UntrueTick,
)

CURSOR = FeedCursor(b"i" * 16, "node-2", "valkey-1", "random", 100)


def run_histories(seeds: range) -> None:
    for seed in seeds:
        simulation = FeedSimulation(seed)
        simulation.run(6_000)
        simulation.settle()
        assert all(reader.proofs > 20 for reader in simulation.readers)
        simulation.close()


@pytest.mark.parametrize("first_seed", range(0, 40, 10))
def test_each_tick_proves_what_readers_have(first_seed: int) -> None:
    run_histories(range(first_seed, first_seed + 10))


def read_the_position_after_the_streams_are_created(patch: pytest.MonkeyPatch) -> None:
    begin = FeedPublisher._begin

    async def begin_late(
        self: FeedPublisher, *, is_truncated: bool
    ) -> tuple[EventLayerStatus, FeedCursor]:
        status, cursor = await begin(self, is_truncated=is_truncated)
        node = await self._servers.log_status()
        if status.cursor != "" and not is_truncated:
            return status, cursor
        return status, replace(cursor, node_run=node.run, position=node.sequence)

    patch.setattr(FeedPublisher, "_begin", begin_late)


def continue_in_any_run(patch: pytest.MonkeyPatch) -> None:
    def is_valid(self: FeedCursor, node: NodeLogStatus, status: EventLayerStatus) -> bool:
        is_same = (self.event_run, self.random) == (status.run_id, status.random)
        return is_same and self.position <= node.sequence

    patch.setattr(FeedCursor, "is_valid", is_valid)


def continue_after_truncated_changes(patch: pytest.MonkeyPatch) -> None:
    begin = FeedPublisher._begin

    async def begin_again(
        self: FeedPublisher, *, is_truncated: bool
    ) -> tuple[EventLayerStatus, FeedCursor]:
        status, cursor = await begin(self, is_truncated=False)
        if is_truncated:
            node = await self._servers.log_status()
            cursor = replace(cursor, position=node.sequence)
        return status, cursor

    patch.setattr(FeedPublisher, "_begin", begin_again)


def append_to_the_old_streams(patch: pytest.MonkeyPatch) -> None:
    install = SimulatedServers.install

    async def install_beside(self: SimulatedServers, replaced: str | None) -> AppendResult:
        is_new = not self._world.events.random
        return await install(self, replaced if is_new else None)

    patch.setattr(SimulatedServers, "install", install_beside)


@pytest.mark.parametrize(
    "broken_rule",
    [
        read_the_position_after_the_streams_are_created,
        continue_in_any_run,
        continue_after_truncated_changes,
        append_to_the_old_streams,
    ],
)
def test_the_simulation_detects_the_absence_of_any_single_rule(
    broken_rule: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken_rule(monkeypatch)
    with pytest.raises(UntrueTick):
        run_histories(range(200))


def test_without_faults_there_is_one_incarnation() -> None:
    simulation = FeedSimulation(1, has_faults=False)
    simulation.run(3_000)
    simulation.node.close_and_open()
    simulation.run(3_000)
    simulation.settle()
    assert simulation.begun == 1
    simulation.close()


@pytest.mark.parametrize(
    ("node", "is_valid"),
    [
        (NodeLogStatus("node-2", 100, None, None), True),
        (NodeLogStatus("node-2", 99, None, None), False),
        (NodeLogStatus("node-3", 100, "node-2", 100), True),
        (NodeLogStatus("node-3", 120, "node-2", 99), False),
        (NodeLogStatus("node-3", 100, None, None), False),
        (NodeLogStatus("node-3", 100, "node-1", 100), False),
    ],
)
def test_a_feed_continues_in_the_same_run_or_after_its_clean_end(
    node: NodeLogStatus,
    is_valid: bool,  # noqa: FBT001 -- a parameter of the test
) -> None:
    status = EventLayerStatus(1, "valkey-1", "random", "", "1001:1", str(CURSOR))
    assert FeedCursor.parse(status.cursor) == CURSOR
    assert CURSOR.is_valid(node, status) == is_valid
    for other in (("valkey-2", "random"), ("valkey-1", "other")):
        assert not CURSOR.is_valid(node, EventLayerStatus(1, *other, "", "", ""))


@pytest.mark.parametrize("text", ["", "a b c", "zz node valkey random 5", "aa node valkey r x"])
def test_a_cursor_of_another_form_is_none(text: str) -> None:
    assert FeedCursor.parse(text) is None
