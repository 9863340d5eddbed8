"""What happens to frames that wait for a client."""

from __future__ import annotations

import asyncio

from connections.outgoing import MAX_WAITING_BYTES, Outgoing
from tests.waiting import TIMEOUT_S, until


async def test_frames_leave_in_their_order_and_are_reported() -> None:
    delivered: list[bytes] = []
    sizes: list[int] = []

    async def deliver(frame: bytes) -> None:
        await asyncio.sleep(0)
        delivered.append(frame)

    outgoing = Outgoing(deliver, lambda: None)
    for text in (b"a", b"bb"):
        outgoing.put(text, sizes.append)
    assert not outgoing.is_empty
    await until(lambda: outgoing.is_empty, "both frames to leave")
    outgoing.put(b"ccc", sizes.append)
    await outgoing.finish()
    assert (delivered, sizes, outgoing.is_empty) == ([b"a", b"bb", b"ccc"], [1, 2, 3], True)


async def test_nothing_is_sent_to_a_client_that_has_disconnected() -> None:
    attempts: list[bytes] = []
    lost: list[bool] = []

    async def fail(frame: bytes) -> None:
        attempts.append(frame)
        raise ConnectionResetError

    outgoing = Outgoing(fail, lambda: lost.append(True))
    outgoing.put(b"a")
    outgoing.put(b"b")
    await outgoing.finish()
    outgoing.put(b"c")
    assert (attempts, lost) == ([b"a"], [True])
    assert outgoing.is_closed
    assert outgoing.is_empty


async def test_a_subscription_that_refills_the_queue_does_not_keep_a_closing_connection() -> None:
    delivered: list[bytes] = []

    async def deliver(frame: bytes) -> None:
        await asyncio.sleep(0)
        delivered.append(frame)

    outgoing = Outgoing(deliver, lambda: None)

    def refill(_: int) -> None:
        outgoing.put(b"change", refill)

    outgoing.put(b"change", refill)
    await until(lambda: len(delivered) > 3, "some changes")
    outgoing.put(b"error")
    await asyncio.wait_for(outgoing.finish(), TIMEOUT_S)
    assert delivered.index(b"error") >= len(delivered) - 2
    assert outgoing.is_empty


async def test_a_reader_waits_for_room_until_the_client_has_received_enough() -> None:
    may_deliver = asyncio.Event()

    async def deliver(_: bytes) -> None:
        await may_deliver.wait()

    outgoing = Outgoing(deliver, lambda: None)
    for _ in range(3):
        outgoing.put(bytes(MAX_WAITING_BYTES // 2))
    waiting = asyncio.create_task(outgoing.room())
    await asyncio.sleep(0)
    assert not waiting.done()
    may_deliver.set()
    await asyncio.wait_for(waiting, TIMEOUT_S)
    await outgoing.finish()


async def test_a_frame_that_can_be_delivered_at_once_is_not_queued() -> None:
    delivered: list[bytes] = []
    later: list[bytes] = []
    sizes: list[int] = []
    takes = True

    def at_once(frame: bytes) -> bool:
        if takes:
            delivered.append(frame)
        return takes

    async def deliver(frame: bytes) -> None:
        await asyncio.sleep(0)
        later.append(frame)

    outgoing = Outgoing(deliver, lambda: None, at_once)
    outgoing.put(b"a", sizes.append)
    assert (delivered, sizes, outgoing.is_empty) == ([b"a"], [1], True)
    takes = False
    outgoing.put(b"bb", sizes.append)
    takes = True
    # It must not overtake the frame before it.
    outgoing.put(b"ccc", sizes.append)
    assert (delivered, sizes, outgoing.is_empty) == ([b"a"], [1], False)
    await until(lambda: outgoing.is_empty, "the others to leave")
    assert (later, sizes) == ([b"bb", b"ccc"], [1, 2, 3])
    await outgoing.close()
    outgoing.put(b"d", sizes.append)
    assert delivered == [b"a"]


async def test_a_subscription_that_answers_each_frame_with_another_leaves_turns_to_others() -> None:
    delivered: list[bytes] = []

    async def deliver(frame: bytes) -> None:
        await asyncio.sleep(0)
        delivered.append(frame)

    def at_once(frame: bytes) -> bool:
        delivered.append(frame)
        return True

    outgoing = Outgoing(deliver, lambda: None, at_once)

    def refill(_: int) -> None:
        outgoing.put(b"change", refill)

    outgoing.put(b"change", refill)
    assert delivered == [b"change"]
    await until(lambda: len(delivered) > 3, "further changes")
    await outgoing.close()
