"""Messages between server processes, also when Valkey fails."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID, uuid4

import pytest
from channels.layers import BaseChannelLayer
from channels_redis.core import RedisChannelLayer
from redis.exceptions import RedisError

from connections.server_channel import REJOIN_S, ServerChannel, due
from foundation.json_types import JsonObject
from foundation.server_messages import (
    GROUP_EXPIRY_S,
    SERVERS,
    SOCKET_TIMEOUT_S,
    MessageSender,
    layer_settings,
    tenant_group,
)
from tests.own_valkey import OwnValkey
from tests.waiting import TIMEOUT_S, until

NEWS = "test.news"


def layer_of(
    valkey: OwnValkey,
    *,
    blocking_read_s: float = RedisChannelLayer.brpop_timeout,
    socket_timeout_s: float = SOCKET_TIMEOUT_S,
) -> RedisChannelLayer:
    settings = layer_settings(valkey.url)["CONFIG"]
    assert isinstance(settings, dict)
    (host,) = settings["hosts"]
    hosts = [{**host, "socket_timeout": socket_timeout_s}]
    layer = RedisChannelLayer(**{**settings, "hosts": hosts})
    layer.brpop_timeout = blocking_read_s
    return layer


class CancellationLosingLayer(RedisChannelLayer):  # type: ignore[misc]
    """Joins no group while `is_refusing`, and a read continues after its first cancellation."""

    is_refusing = False
    n_lost = 0

    async def group_add(self, group: str, channel: str) -> None:
        if self.is_refusing:
            raise RedisError("refused")
        await super().group_add(group, channel)

    async def receive(self, channel: str) -> JsonObject:
        try:
            return await self._received(channel)
        except asyncio.CancelledError:
            if self.n_lost:
                raise
            self.n_lost += 1
            return await self._received(channel)

    async def _received(self, channel: str) -> JsonObject:
        message: JsonObject = await super().receive(channel)
        return message


class ReceivingChannel:
    """A process's channel, and what it has received."""

    def __init__(self, layer: RedisChannelLayer, tenants: set[UUID]) -> None:
        self.layer = layer
        self.received: list[JsonObject] = []
        self.channel = ServerChannel(lambda: tenants, {NEWS: self._take}, layer)

    def _take(self, message: JsonObject) -> None:
        if message.get("is_broken"):
            raise ValueError("malformed")
        self.received.append(message)

    async def send(self, group: str = SERVERS, **members: object) -> None:
        await self.layer.group_send(group, {"type": NEWS, **members})

    async def until_received(self) -> None:
        """Send until something is received: messages sent while Valkey is unavailable are lost."""
        before = len(self.received)
        # Not a timeout around the loop: the client can lose its cancellation.
        deadline = time.monotonic() + TIMEOUT_S
        while len(self.received) == before:
            assert time.monotonic() < deadline, "nothing was received"
            with contextlib.suppress(
                Exception
            ):  # any error of a client whose server is unavailable
                async with asyncio.timeout(0.5):
                    await self.send()
            await asyncio.sleep(0.05)


@asynccontextmanager
async def listening(
    layer: RedisChannelLayer, tenants: set[UUID] | None = None
) -> AsyncIterator[ReceivingChannel]:
    channel = ReceivingChannel(layer, tenants or set())
    await channel.channel.start()
    await until(lambda: SERVERS in channel.channel.groups, "the groups to be joined")
    try:
        yield channel
    finally:
        await channel.channel.stop()
        await layer.close_pools()


def reads(valkey: OwnValkey) -> int:
    """Return how many blocking reads have ended."""
    with valkey.client() as client:
        return int(client.info("commandstats").get("cmdstat_bzpopmin", {}).get("calls", 0))


def connections(valkey: OwnValkey) -> int:
    with valkey.client() as client:
        return int(client.info("stats")["total_connections_received"])


def test_a_blocking_read_ends_before_the_sockets_timeout() -> None:
    assert RedisChannelLayer.brpop_timeout < SOCKET_TIMEOUT_S


def test_groups_are_joined_again_before_they_expire() -> None:
    assert REJOIN_S < GROUP_EXPIRY_S
    assert due({"a", "b"}, {"a": 0.0}, REJOIN_S - 1) == ["b"]
    assert due({"a"}, {"a": 0.0}, REJOIN_S) == ["a"]


def blocking_reads(valkey: OwnValkey) -> int:
    """Return how many connections are in a blocking read, or were in one last."""
    with valkey.client() as client:
        return sum(connection["cmd"] == "bzpopmin" for connection in client.client_list())


async def test_an_idle_channel_keeps_its_connections(valkey: OwnValkey) -> None:
    async with listening(layer_of(valkey, blocking_read_s=0.1)) as process:
        await until(lambda: reads(valkey) > 0, "the first blocking read")
        before = reads(valkey), connections(valkey)
        await until(lambda: reads(valkey) > before[0] + 3, "several reads without a message")
        await process.send(number=1)
        await until(lambda: len(process.received) == 1, "the message")
        await until(lambda: blocking_reads(valkey) == 1, "the next blocking read")
    assert process.received[0]["number"] == 1


@pytest.mark.long
@pytest.mark.timeout(900)
async def test_ten_idle_minutes_lose_nothing(valkey: OwnValkey) -> None:
    async with listening(layer_of(valkey)) as process:
        with valkey.client() as client:
            address = {connection["addr"] for connection in client.client_list()}
        await asyncio.sleep(600)
        with valkey.client() as client:
            assert address & {connection["addr"] for connection in client.client_list()}
        await process.send()
        await until(lambda: len(process.received) == 1, "the message")


async def test_a_message_reaches_processes_with_connections_of_its_tenant(
    valkey: OwnValkey,
) -> None:
    tenant = uuid4()
    async with listening(layer_of(valkey), {tenant}) as here, listening(layer_of(valkey)) as there:
        await until(lambda: tenant_group(tenant) in here.channel.groups, "the tenant's group")
        await here.send(tenant_group(tenant), number=1)
        await here.send(number=2)
        await until(lambda: len(here.received) == 2 and len(there.received) == 1, "the messages")
    assert [item["number"] for item in here.received] == [1, 2]
    assert [item["number"] for item in there.received] == [2]


async def test_a_tenants_group_is_joined_with_its_first_client(valkey: OwnValkey) -> None:
    tenants = set[UUID]()
    channel = ReceivingChannel(layer_of(valkey), tenants)
    await channel.channel.start()
    await until(lambda: SERVERS in channel.channel.groups, "the groups to be joined")
    tenant = uuid4()
    tenants.add(tenant)
    channel.channel.tenants_changed()
    await until(lambda: tenant_group(tenant) in channel.channel.groups, "the tenant's group")
    await channel.channel.stop()
    await channel.layer.close_pools()


async def test_a_malformed_message_is_passed_over(valkey: OwnValkey) -> None:
    async with listening(layer_of(valkey)) as process:
        await process.send(is_broken=True)
        await process.layer.group_send(SERVERS, {"type": "of.a.newer.server"})
        await process.layer.group_send(SERVERS, {"no": "type"})
        await process.send(number=1)
        await until(lambda: len(process.received) == 1, "the message")


async def test_messages_arrive_again_after_valkey_was_killed_and_lost_its_data(
    valkey: OwnValkey,
) -> None:
    async with listening(layer_of(valkey)) as process:
        await process.until_received()
        valkey.kill()
        await until(lambda: not process.channel.groups, "the loss to be noticed")
        valkey.start()
        await process.until_received()


async def test_messages_arrive_again_when_a_read_lost_its_cancellation(valkey: OwnValkey) -> None:
    settings = layer_settings(valkey.url)["CONFIG"]
    assert isinstance(settings, dict)
    layer = CancellationLosingLayer(**settings)
    tenants = set[UUID]()
    async with listening(layer, tenants) as process:
        await process.until_received()
        layer.is_refusing = True
        tenants.add(uuid4())
        process.channel.tenants_changed()
        await until(lambda: layer.n_lost == 1, "the read to be cancelled")
        layer.is_refusing = False
        with valkey.client() as client:
            client.flushall()
        await process.until_received()


async def test_messages_arrive_again_after_valkey_was_stopped(valkey: OwnValkey) -> None:
    layer = layer_of(valkey, blocking_read_s=0.2, socket_timeout_s=1.0)
    async with listening(layer) as process:
        await process.until_received()
        valkey.freeze()
        await until(lambda: not process.channel.groups, "the loss to be noticed")
        valkey.thaw()
        await process.until_received()


def test_sending_does_not_wait_while_valkey_is_stopped(valkey: OwnValkey) -> None:
    sender = MessageSender(lambda: _as_layer(layer_of(valkey)))
    valkey.freeze()
    for number in range(10):
        sender.send(SERVERS, {"type": NEWS, "number": number})
    # Each of them is lost a second later.
    sender.flush()
    valkey.thaw()


def _as_layer(layer: RedisChannelLayer) -> BaseChannelLayer:
    result: BaseChannelLayer = layer
    return result
