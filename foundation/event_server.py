"""Connections to the event layer's server, for the commands of the app server itself."""

from __future__ import annotations

from foundation.environment import environment
from foundation.per_loop import PerLoop
from foundation.valkey_wire import ValkeyWire

CONNECT_TIMEOUT_S = 1.0
ANSWER_TIMEOUT_S = 5.0


def _connection() -> ValkeyWire:
    return ValkeyWire(
        environment().events,
        connect_timeout_s=CONNECT_TIMEOUT_S,
        answer_timeout_s=ANSWER_TIMEOUT_S,
    )


_wires = PerLoop(_connection)


def wire() -> ValkeyWire:
    """Return the running loop's connection."""
    return _wires.get()


async def close() -> None:
    """Close the running loop's connection."""
    if (open_wire := _wires.pop()) is not None:
        await open_wire.aclose()
