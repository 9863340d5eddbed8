"""A server finds its grid when somebody first subscribes."""

from __future__ import annotations

import asyncio
import logging
from uuid import uuid4

import pytest

from documents.outbox.database import close_relay_pool
from foundation import event_server as event_layer
from realtime.hub import process
from realtime.hub.process import HubProcess
from tests.own_valkey import OwnValkey
from tests.waiting import until


async def test_a_subscriber_waits_while_the_event_layer_is_briefly_away(
    valkey: OwnValkey,
    settings_environment: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings_environment.setenv("EVENTS_URL", valkey.url)
    caplog.set_level(logging.INFO, process.log.name)
    hub = HubProcess()
    valkey.kill()
    found = asyncio.create_task(hub.running(uuid4()))
    await until(lambda: "looked for again" in caplog.text, "a first attempt")
    valkey.start()
    assert await found is hub.now(None)
    await hub.stop()
    await event_layer.close()
    await close_relay_pool()
