"""Which position the streams of native collections are complete up to."""

from __future__ import annotations

import pytest

from documents.outbox.events import EventLayer, EventLayerStatus
from documents.outbox.feed import progress
from documents.outbox.feed.publisher import FeedCursor, NodeLogStatus
from documents.outbox.feed.servers import as_log_status
from foundation.valkey_wire import ValkeyWire

CURSOR = FeedCursor(b"i" * 16, "node-2", "valkey-1", "random", 100)


@pytest.mark.parametrize(
    ("cursor", "reply", "position"),
    [
        (str(CURSOR), {b"run": b"node-2", b"sequence": 100}, 100),
        # The feed has not sent a tick since the streams were created.
        ("", {b"run": b"node-2", b"sequence": 100}, None),
        # The node was killed: positions after its end may be assigned again.
        (str(CURSOR), {b"run": b"node-3", b"sequence": 100}, None),
        (
            str(CURSOR),
            {
                b"run": b"node-3",
                b"sequence": 120,
                b"previous_run": b"node-2",
                b"previous_sequence": 100,
            },
            100,
        ),
    ],
)
async def test_the_position_is_that_of_the_last_tick_if_it_is_still_valid(
    monkeypatch: pytest.MonkeyPatch,
    cursor: str,
    reply: dict[bytes, object],
    position: int | None,
) -> None:
    none = {b"previous_run": None, b"previous_sequence": None}

    async def read_status(_: EventLayer) -> EventLayerStatus:
        return EventLayerStatus(0, "valkey-1", "random", "", "5:1", cursor)

    async def log_status() -> NodeLogStatus:
        return as_log_status({**none, **reply})  # type: ignore[dict-item]

    monkeypatch.setattr(EventLayer, "read_status", read_status)
    monkeypatch.setattr(progress, "_log_status", log_status)
    wire = ValkeyWire("redis://unused.invalid", connect_timeout_s=1, answer_timeout_s=1)
    assert await progress.published_position(wire, 1) == position
