"""A separate event layer for a test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from documents.outbox.events import EventLayer
from foundation.valkey_wire import ValkeyWire
from tests.documents.outbox.streams import Streams
from tests.own_valkey import OwnValkey


@pytest.fixture
def events(wire: ValkeyWire) -> EventLayer:
    return EventLayer(wire, 1)


@pytest.fixture
def streams(valkey: OwnValkey) -> Iterator[Streams]:
    with valkey.client() as client:
        yield Streams(client)
