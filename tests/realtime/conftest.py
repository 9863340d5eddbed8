"""An event layer of a test's own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from foundation.valkey_wire import ValkeyWire
from realtime.events.layer import GridLayer
from tests.own_valkey import OwnValkey


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[OwnValkey]:
    """A server that may be killed and emptied."""
    own = OwnValkey(tmp_path)
    yield own
    own.close()


@pytest.fixture
async def wire(valkey: OwnValkey) -> AsyncIterator[ValkeyWire]:
    wire = ValkeyWire(valkey.url, connect_timeout_s=2, answer_timeout_s=5)
    yield wire
    await wire.aclose()


@pytest.fixture
def grid(wire: ValkeyWire) -> GridLayer:
    return GridLayer(wire, 1, 1)
