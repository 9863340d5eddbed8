"""The hub, as its event loop sees it: bytes of the log in, frames and requests out."""

from __future__ import annotations

import json
import struct

import pytest

from foundation.json_types import JsonObject
from rillbase_native import (
    FailQuery,
    Filter,
    Hub,
    LiveQuery,
    RegisterQuery,
    ReplayLog,
    Sort,
    Value,
    id_key,
)

NOW_US = 1_800_000_000_000_000
HOLDER = b"h" * 16
ACTIVE, TICK = 4, 7


def body(text: str) -> bytes:
    value = Value.parse(text.encode())
    return value.bson()


def row(name: str, version: int) -> tuple[bytes, int, int, int, bytes]:
    key = id_key(Value.parse(json.dumps(name).encode()))
    return key, version, 0, 0, body(json.dumps({"_id": name}))


def query() -> LiveQuery:
    everything = Filter.parse(None)
    return LiveQuery(
        b"t" * 16,
        b"c" * 16,
        everything,
        Sort.parse(None, everything),
        None,
        offset=0,
        limit=None,
        rules_version=0,
        slack=0,
    )


def notification(kind: int, count: int, rest: bytes) -> tuple[str, bytes]:
    """Return what the only filter node says, and its place in the log."""
    head = struct.pack(">BBBHQQ", 1, kind, 0, 0, 1, count)
    return f"{NOW_US // 1000}-{count}", head + rest


def active(query: LiveQuery, count: int) -> tuple[str, bytes]:
    return notification(ACTIVE, count, query.hash + struct.pack(">QQQ", 1, 7, 1))


def tick(count: int) -> tuple[str, bytes]:
    proof = struct.pack(">QQQ", NOW_US, 1, 1) + b"i" * 16 + struct.pack(">QQI", 9, 9, 0)
    return notification(TICK, count, proof)


@pytest.fixture
def hub() -> Hub:
    hub = Hub(
        b"secret",
        installation=1,
        epoch=1,
        write_partitions=1,
        outbox_frames=1_000,
        outbox_bytes=1_000_000,
        memory_bytes=1_000_000,
        trace_bytes=100_000,
    )
    hub.tick(NOW_US)
    return hub


def frames(hub: Hub) -> list[JsonObject]:
    return [json.loads(frame.text) for frame in hub.poll(1_000)]


def items(result: JsonObject) -> list[JsonObject]:
    actual = result["items"]
    assert isinstance(actual, list)
    return [item for item in actual if isinstance(item, dict)]


def opened(hub: Hub, query: LiveQuery) -> None:
    hub.attach(1, "s1", query, 0, holder=HOLDER, connection=1)
    asked = hub.asked(query.hash)
    assert asked is not None
    hub.registered(query.hash, asked, 1, "7-1", "0-0", (5, 5, []), [row("a", 1)])
    hub.read(0, [active(query, 1), tick(2)])
    hub.tick(NOW_US + 300_000)


def test_an_unregistered_query_is_requested_once(hub: Hub) -> None:
    live_query = query()
    hub.attach(1, "s1", live_query, 0, holder=HOLDER, connection=1)
    hub.attach(2, "s2", live_query, 0, holder=HOLDER, connection=1)
    (request,) = hub.take_requests()
    assert isinstance(request, RegisterQuery)
    assert request.query == live_query.hash
    assert hub.take_requests() == []


def test_the_result_precedes_ready(hub: Hub) -> None:
    opened(hub, query())
    result, ready = frames(hub)
    assert (result["type"], ready["type"]) == ("result", "ready")
    assert [item["id"] for item in items(result)] == ["a"]
    figures = hub.figures(1)
    assert figures is not None
    assert (figures.state, figures.events, figures.lag_us) == ("live", 0, 300_000)


def test_subscribers_are_notified_when_ticks_stop(hub: Hub) -> None:
    opened(hub, query())
    frames(hub)
    hub.tick(NOW_US + 2_500_000)
    assert [frame["state"] for frame in frames(hub)] == ["stale"]


def test_what_subscriptions_take_is_measured_and_bounded(hub: Hub) -> None:
    opened(hub, query())
    frames(hub)
    hub.tick(NOW_US + 600_000)
    memory, figures = hub.memory(), hub.figures(1)
    assert 0 < memory.results < 1_000
    assert memory.outboxes > 0
    assert figures is not None
    assert (figures.waiting_bytes, figures.result_bytes) == (memory.outboxes, memory.results)
    assert hub.has_room()
    live_query = LiveQuery.read(query().definition())
    large = body(json.dumps({"_id": "b", "text": "x" * 300_000}))
    narrow = Hub(
        b"secret",
        installation=1,
        epoch=1,
        write_partitions=1,
        outbox_frames=1_000,
        outbox_bytes=1_000_000,
        memory_bytes=1_000_000,
        trace_bytes=100_000,
    )
    narrow.attach(1, "s1", live_query, 0, holder=HOLDER, connection=1)
    narrow.take_requests()
    asked = narrow.asked(live_query.hash)
    assert asked is not None
    narrow.registered(live_query.hash, asked, 1, "1-1", "0-0", (5, 5, []), [(b"b", 1, 0, 0, large)])
    (request,) = narrow.take_requests()
    assert isinstance(request, FailQuery)
    assert request.code == "result_too_large"


def test_a_refused_query_ends_with_its_problem(hub: Hub) -> None:
    live_query = query()
    hub.attach(1, "s1", live_query, 0, holder=HOLDER, connection=1)
    hub.refused(live_query.hash, '{"code":"result_too_large"}')
    [frame] = hub.poll(10)
    assert (frame.subscription, frame.is_last) == (1, True)
    assert json.loads(frame.text)["error"] == {"code": "result_too_large"}


def test_a_resumed_client_reads_the_log_from_its_token(hub: Hub) -> None:
    live_query = query()
    opened(hub, live_query)
    token = str(frames(hub)[-1]["resume"])
    hub.take_requests()
    hub.read(0, [tick(3)])
    hub.attach(2, "s2", live_query, 0, holder=HOLDER, connection=1, resume=token)
    hub.tick(NOW_US + 600_000)
    (request,) = hub.take_requests()
    assert isinstance(request, ReplayLog)
    assert (request.subscription, request.partition) == (2, 0)
    assert (request.after, request.upto) == (tick(2)[0], tick(3)[0])
    hub.replay(2, [tick(3)])
    assert [frame["type"] for frame in frames(hub)] == ["ready"]


def test_a_token_of_another_principal_is_answered_by_a_fresh_result(hub: Hub) -> None:
    live_query = query()
    opened(hub, live_query)
    token = str(frames(hub)[-1]["resume"])
    hub.attach(2, "s2", live_query, 0, holder=b"x" * 16, connection=1, resume=token)
    assert [frame["type"] for frame in frames(hub)] == ["reset", "result", "ready"]


def test_bytes_that_are_no_notification_are_refused(hub: Hub) -> None:
    with pytest.raises(ValueError, match="notification"):
        hub.read(0, [("1-1", b"\xff" * 20)])
