"""When the commands of a pipeline leave."""

from __future__ import annotations

import asyncio

from foundation.resp_pipeline import RespPipeline
from foundation.resp_reader import RespReader


class WrittenData(asyncio.Transport):
    """A transport that keeps what is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writes.append(bytes(data))

    def abort(self) -> None:
        """Do nothing."""


async def test_a_command_leaves_at_once_and_those_behind_it_share_a_write() -> None:
    pipeline = RespPipeline[bytes](
        asyncio.get_running_loop(), 10, RespReader(KeyError, max_reply_bytes=100)
    )
    transport = WrittenData()
    pipeline.connection_made(transport)
    first = pipeline.call("GET", "a")
    assert transport.writes == [b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n"]
    second, third = pipeline.call("GET", "b"), pipeline.call("GET", "c")
    assert len(transport.writes) == 1
    await asyncio.sleep(0)
    assert transport.writes[1:] == [b"*2\r\n$3\r\nGET\r\n$1\r\nb\r\n*2\r\n$3\r\nGET\r\n$1\r\nc\r\n"]
    pipeline.data_received(b"$1\r\nA\r\n$1\r\nB\r\n$1\r\nC\r\n")
    assert [await each for each in (first, second, third)] == [b"A", b"B", b"C"]
    pipeline.close()
