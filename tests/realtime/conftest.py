"""A separate event layer for a test."""

from __future__ import annotations

import pytest

from documents.outbox.events import prefix
from foundation.valkey_wire import ValkeyWire
from realtime.events.layer import GridLayer


@pytest.fixture
def grid(wire: ValkeyWire) -> GridLayer:
    return GridLayer(wire, prefix(1), 1)
