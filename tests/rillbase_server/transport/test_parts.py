"""Decisions that need no socket: cuts, rates, memory."""

from __future__ import annotations

import asyncio
import socket

from foundation.message_memory import MessageMemory
from rillbase_server.transport.allocator import GROWTH_BYTES, TRIM_INTERVAL_S, TrimSchedule
from rillbase_server.transport.framing import Framing
from rillbase_server.transport.peer import has_hung_up
from rillbase_server.transport.rates import TransferProgress
from tests.waiting import until


def test_a_head_ends_in_the_same_place_however_it_is_split() -> None:
    head, rest = b"GET / HTTP/1.1\r\nHost: l\r\n\r\n", b"GET /next"
    for torn in range(1, len(head)):
        framing = Framing(1000)
        first = head[:torn]
        assert framing.piece(first, 0) == len(first)
        second = head[torn:] + rest
        assert second[: framing.piece(second, 0)] == head[torn:]
        assert framing.head_bytes == len(head)


def test_a_rate_is_judged_by_whole_windows_in_which_the_peer_is_waited_for() -> None:
    progress = TransferProgress()

    def slow(now_s: float, moved: int) -> bool:
        return progress.is_too_slow(now_s, moved, window_s=10, min_bytes_per_s=100)

    assert not slow(0, 0)
    assert not slow(9, 0)
    progress.pause()
    assert not slow(10, 0)
    assert not slow(19, 0)
    assert not slow(20, 1000)
    assert not slow(29, 1000)
    assert slow(30, 1999)


def test_claims_wait_in_order_and_only_the_oldest_may_exceed_the_memory() -> None:
    memory = MessageMemory(100)
    resumed: list[str] = []
    first, second, third = memory.begin(), memory.begin(), memory.begin()
    assert memory.extend(first, 60, lambda: resumed.append("first"))
    assert memory.extend(second, 40, lambda: resumed.append("second"))
    assert not memory.extend(second, 40, lambda: resumed.append("second"))
    assert not memory.extend(third, 10, lambda: resumed.append("third"))
    assert memory.extend(first, 60, lambda: resumed.append("first"))
    assert memory.used_bytes == 160
    first.release()
    assert resumed == ["second", "third"]
    second.release()
    third.release()
    assert memory.used_bytes == 0


def test_a_shared_claim_is_released_by_its_last_holder() -> None:
    memory = MessageMemory(100)
    claim = memory.begin()
    memory.extend(claim, 50, lambda: None)
    claim.retain()
    claim.release()
    assert memory.used_bytes == 50
    claim.release()
    assert memory.used_bytes == 0


async def test_a_disconnected_peer_is_noticed_even_without_reads() -> None:
    accepted: asyncio.Future[asyncio.Transport] = asyncio.get_running_loop().create_future()

    class Unread(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            assert isinstance(transport, asyncio.Transport)
            transport.pause_reading()
            accepted.set_result(transport)

    server = await asyncio.get_running_loop().create_server(Unread, "127.0.0.1")
    with socket.create_connection(server.sockets[0].getsockname()) as client:
        transport = await accepted
        client.sendall(b"something unread")
        assert not has_hung_up(transport)
    await until(lambda: has_hung_up(transport), "the peer's end to be noticed")
    transport.abort()
    server.close()


def test_free_pages_are_returned_some_time_after_growth_and_again_while_pages_remain() -> None:
    resident_bytes = 100 * GROWTH_BYTES
    schedule = TrimSchedule(lambda: resident_bytes)
    assert not schedule.is_due(0)
    resident_bytes += GROWTH_BYTES + 1
    assert not schedule.is_due(1)
    assert schedule.is_waiting
    assert not schedule.is_due(1 + TRIM_INTERVAL_S / 2)
    assert schedule.is_due(1 + TRIM_INTERVAL_S)
    # What stayed resident is in use.
    assert not any(schedule.is_due(100 + second) for second in range(100))
    resident_bytes -= 10 * GROWTH_BYTES
    assert not schedule.is_due(300)
    resident_bytes += GROWTH_BYTES + 1
    assert not schedule.is_due(301)
    assert schedule.is_due(301 + TRIM_INTERVAL_S)
