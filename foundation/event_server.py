"""The connections to the event layer's server that the app server's own commands take."""

from __future__ import annotations

import asyncio
from weakref import WeakKeyDictionary

from foundation.environment import environment
from foundation.valkey_wire import ValkeyWire

CONNECT_TIMEOUT_S = 1.0
ANSWER_TIMEOUT_S = 5.0

_wires: WeakKeyDictionary[asyncio.AbstractEventLoop, ValkeyWire] = WeakKeyDictionary()


def wire() -> ValkeyWire:
    """Return the running loop's connection."""
    loop = asyncio.get_running_loop()
    found = _wires.get(loop)
    if found is None:
        found = _wires[loop] = ValkeyWire(
            environment().events,
            connect_timeout_s=CONNECT_TIMEOUT_S,
            answer_timeout_s=ANSWER_TIMEOUT_S,
        )
    return found


async def close() -> None:
    """Close the running loop's connection."""
    found = _wires.pop(asyncio.get_running_loop(), None)
    if found is not None:
        await found.aclose()
