"""A server looks for its grid when the first client subscribes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from uuid import uuid4

import pytest
from django.db import connections

from connections.connection_registry import STOPPING
from documents.backend import Backend
from documents.outbox.database import close_relay_pool
from foundation import event_server as event_layer
from realtime.grid.layout import CHANGED
from realtime.grid.size import GridSize
from realtime.hub import process
from realtime.hub.process import HubProcess
from tests.make import TenantAccount, make_tenant
from tests.own_valkey import OwnValkey
from tests.realtime.fake_grid import fake_grid
from tests.waiting import until


async def test_a_subscriber_waits_while_the_event_layer_is_briefly_unavailable(
    valkey: OwnValkey,
    settings_environment: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings_environment.setenv("EVENTS_URL", valkey.url)
    caplog.set_level(logging.INFO, process.log.name)
    hub = HubProcess()
    valkey.kill()
    task = asyncio.create_task(hub.running(uuid4(), Backend.POSTGRES))
    await until(lambda: "the grid is read again" in caplog.text, "a first attempt")
    valkey.start()
    assert await task is hub.now(Backend.POSTGRES)
    await hub.stop()
    await event_layer.close()
    await close_relay_pool()


async def test_a_hub_starts_when_another_server_announces_its_stop(
    valkey: OwnValkey, settings_environment: pytest.MonkeyPatch
) -> None:
    settings_environment.setenv("EVENTS_URL", valkey.url)
    hub = HubProcess()
    hub.prepare({"type": STOPPING, "process": hub.name})
    hub.prepare({"type": STOPPING, "process": "another"})
    await until(lambda: hub.now(Backend.POSTGRES) is not None, "the hub")
    await hub.stop()
    await event_layer.close()
    await close_relay_pool()


@pytest.fixture
def account() -> TenantAccount:
    return make_tenant()


def _with_connections(work: Callable[[], object]) -> None:
    """Use the database in a thread, and give its connections back."""
    try:
        work()
    finally:
        connections.close_all()


async def test_an_announced_dedicated_grid_is_used_immediately(
    valkey: OwnValkey,
    settings_environment: pytest.MonkeyPatch,
    account: TenantAccount,
) -> None:
    settings_environment.setenv("EVENTS_URL", valkey.url)
    # Nobody looks by the clock.
    settings_environment.setattr(process, "POLL_S", 3600.0)
    hub = HubProcess()
    await hub.running(account.tenant.pk, Backend.POSTGRES)
    assert not hub.has_dedicated_hub(account.tenant.pk)
    grid = fake_grid(account, GridSize(1), valkey.url)
    await asyncio.to_thread(_with_connections, grid.__enter__)
    hub.grids_changed({"type": CHANGED})
    await until(lambda: hub.has_dedicated_hub(account.tenant.pk), "the tenant's grid")
    await asyncio.to_thread(_with_connections, partial(grid.__exit__, None, None, None))
    await hub.stop()
    await event_layer.close()
    await close_relay_pool()
