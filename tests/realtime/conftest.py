"""A separate event layer for a test."""

from __future__ import annotations

import pytest

from foundation.valkey_wire import ValkeyWire
from realtime.events.layer import GridLayer


@pytest.fixture
def grid(wire: ValkeyWire) -> GridLayer:
    return GridLayer(wire, 1, 1)
