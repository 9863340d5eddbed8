"""What of the real-time side lives in a web process, put together."""

from __future__ import annotations

from dataclasses import dataclass

from documents.live import Kinds
from realtime import valkey
from realtime.socket.crowd import Crowd


@dataclass(frozen=True, slots=True)
class Live:
    """The connections of a process, and what can be subscribed to over them."""

    kinds: Kinds
    crowd: Crowd

    async def start(self) -> None:
        await self.crowd.start()

    async def stop(self) -> None:
        await self.crowd.stop()
        await valkey.close()


def build() -> Live:
    return Live(Kinds(), Crowd())
