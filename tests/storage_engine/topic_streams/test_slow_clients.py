"""A client that does not read is skipped, and catches up by position."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest

from connections.subscriptions import Subscriber
from foundation.scope import scoped
from rillbase_native import Value
from storage_engine.models import Topic
from storage_engine.node import client, feeds
from storage_engine.node.node_subscription import OUTBOX_FRAMES
from storage_engine.topics import facts
from storage_engine.topics.facts import TopicFacts
from storage_engine.topics.live.kind import TopicSubscription, TopicSubscriptionKind
from tenants.credentials.facts import TenantFacts
from tenants.principals import Principal, PrincipalKind
from tests.make import make_tenant
from tests.waiting import until

MORE = 200


class Outlet:
    """Keeps frames, and releases them on request."""

    def __init__(self) -> None:
        self.frames: list[dict[str, Any]] = []
        self.sizes: list[int] = []
        self.is_over = False

    def send(self, frame: bytes) -> None:
        self.frames.append(json.loads(frame))
        self.sizes.append(len(frame))

    def ended(self) -> None:
        self.is_over = True

    @property
    def keys(self) -> list[str]:
        return [frame["key"] for frame in self.frames if frame["type"] == "event"]

    def leave(self, watched: TopicSubscription) -> None:
        """Send everything."""
        sizes, self.sizes = self.sizes, []
        for size in sizes:
            watched.drained(1, size)


@pytest.fixture
async def topic() -> AsyncIterator[TopicFacts]:
    """A topic, in this event loop."""

    def make() -> Topic:
        account = make_tenant(plan="dedicated").tenant
        with scoped(tenant_id=account.pk):
            return Topic.objects.create(
                name="news", kind="flat", retention_s=600, max_data_bytes=10_000_000
            )

    account = await asyncio.to_thread(make)
    yield await facts.find(account.tenant_id, "news")
    await feeds.feeds.close()
    await client.close()


async def watch(topic: TopicFacts, outlet: Outlet) -> TopicSubscription:
    tenant = TenantFacts.__new__(TenantFacts)
    object.__setattr__(tenant, "id", topic.tenant_id)
    principal = Principal(
        PrincipalKind.SECRET_KEY,
        uuid4(),
        tenant_id=topic.tenant_id,
        scopes=frozenset({"topics:read"}),
    )
    message = Value.parse(b'{"topic":"news","topic_id":"a","to":"+1h"}')
    watched = await TopicSubscriptionKind().open(
        Subscriber(principal, tenant, "connection", "t"), message, outlet
    )
    await until(lambda: watched.state == "live", "the subscription to be live")
    return watched


async def publish(topic: TopicFacts, *names: str, data: bytes = b"{}") -> None:
    body = Value.parse(data).bson()
    await asyncio.gather(
        *(topic.call("RB.PUB", "ID", "a", "NAME", name, "BSON", body) for name in names)
    )


async def test_publications_for_a_slow_client_are_bounded_in_memory_and_not_lost(
    topic: TopicFacts,
) -> None:
    slow, quick = Outlet(), Outlet()
    lagging, reading = await watch(topic, slow), await watch(topic, quick)
    names = [f"p{number}" for number in range(OUTBOX_FRAMES + MORE)]
    for start in range(0, len(names), 100):
        await publish(topic, *names[start : start + 100])
        await until(lambda end=start + 100: len(quick.keys) == end, "the quick one")  # type: ignore[misc]
        quick.leave(reading)
    assert len(slow.frames) <= OUTBOX_FRAMES
    await until(lambda: lagging.following is not None and lagging.following.lags, "the lag")
    slow.leave(lagging)
    await until(lambda: len(slow.keys) == len(names), "the slow one to catch up")
    assert sorted(slow.keys) == sorted(names)
    assert slow.keys == quick.keys
    assert [f["seq"] for f in slow.frames if f["type"] == "event"] == list(range(1, len(names) + 1))


async def test_bytes_are_bounded_too(topic: TopicFacts) -> None:
    slow = Outlet()
    lagging = await watch(topic, slow)
    large = json.dumps({"text": "x" * 1_000_000}).encode()
    for number in range(12):
        await publish(topic, f"p{number}", data=large)
    await until(lambda: lagging.following is not None and lagging.following.lags, "the lag")
    assert sum(slow.sizes) < 10_000_000
    slow.leave(lagging)
    await until(lambda: len(slow.keys) == 12, "the slow one to catch up")
    assert slow.keys == [f"p{number}" for number in range(12)]
