"""What happens to frames that wait for a client."""

from __future__ import annotations

import asyncio

from connections.outgoing import Outgoing


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
    await outgoing.finish()
    outgoing.put(b"ccc", sizes.append)
    await outgoing.finish()
    assert (delivered, sizes, outgoing.is_empty) == ([b"a", b"bb", b"ccc"], [1, 2, 3], True)


async def test_nothing_more_is_sent_to_a_client_that_is_gone() -> None:
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
