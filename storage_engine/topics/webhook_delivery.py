"""Records a subscription whose publications go to a webhook, with its first publications."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Callable
from uuid import UUID

from django.db import connections

from foundation.errors import FieldProblem, InvalidBody
from foundation.scope import scoped
from storage_engine.models import DeliveredSubscription
from storage_engine.topics.facts import TopicFacts
from storage_engine.topics.subscribe import SubscribeRequest, SubscribeResult
from tenants.models import Webhook


async def webhook_of(tenant_id: UUID, text: str) -> UUID:
    """Return the tenant's webhook with this id, if it is active."""
    return await asyncio.to_thread(_webhook_of, tenant_id, text)


def _webhook_of(tenant_id: UUID, text: str) -> UUID:
    try:
        with scoped(tenant_id=tenant_id):
            webhook = Webhook.objects.filter(pk=UUID(text)).only("state").first()
    except ValueError:
        webhook = None
    finally:
        connections["default"].close()
    if webhook is None:
        raise _wrong("The webhook does not exist.")
    if webhook.state != Webhook.State.ACTIVE:
        raise _wrong("The webhook is not active.")
    return webhook.pk


def recorder_of(
    topic: TopicFacts, request: SubscribeRequest, done: SubscribeResult, webhook_id: UUID
) -> Callable[[], None]:
    """Return what records the subscription, in the transaction of its response."""

    def record() -> None:
        DeliveredSubscription.objects.create(
            topic_id=topic.id,
            webhook_id=webhook_id,
            name=done.name.node_name,
            public_id=done.name.public,
            subscriber=request.subscriber,
            position=done.name.position,
            expires_at=datetime.datetime.fromtimestamp(request.until_ms / 1000, datetime.UTC),
        )

    return record


def _wrong(detail: str) -> InvalidBody:
    return InvalidBody(errors=[FieldProblem("/webhook", "invalid", detail)])
