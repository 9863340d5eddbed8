"""Creates the deliveries of an event, in the transaction of the event.

Event types are the actions of the audit log. A tenant without a matching webhook costs only one
indexed query.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.utils import timezone

from foundation.api.rendering import timestamp
from foundation.ids import uuid7
from foundation.json_types import JsonObject
from foundation.scope import current_tenant_id
from foundation.tasks import run_after_commit
from tenants.models.webhook import Webhook, WebhookDelivery

#: The task that makes a webhook's due deliveries.
WORK_TASK = "tenants.webhooks.work"
TEST_EVENT = "webhook.test"


def matches(patterns: Iterable[str], event_type: str) -> bool:
    """Return whether one of the patterns (exact, `family.*` or `*`) matches the event type."""
    return any(
        pattern in ("*", event_type)
        or (pattern.endswith(".*") and event_type.startswith(pattern[:-1]))
        for pattern in patterns
    )


def announce(event_type: str, data: JsonObject) -> None:
    """Notify the tenant's webhooks that match an event, once the transaction commits."""
    active = Webhook.objects.filter(state=Webhook.State.ACTIVE).only("id", "events")
    wanting = [webhook for webhook in active if matches(webhook.events, event_type)]
    if wanting:
        deliver(wanting, event_type, data)


def deliver(
    webhooks: Iterable[Webhook], event_type: str, data: JsonObject
) -> list[WebhookDelivery]:
    """Create a delivery of one event for each webhook."""
    now = timezone.now()
    event_id = uuid7()
    payload: JsonObject = {
        "type": event_type,
        "timestamp": timestamp(now),
        "tenant_id": str(current_tenant_id()),
        "data": data,
    }
    deliveries = WebhookDelivery.objects.bulk_create(
        WebhookDelivery(
            tenant_id=current_tenant_id(),
            webhook_id=webhook.pk,
            event_id=event_id,
            event_type=event_type,
            payload=payload,
            next_attempt_at=now,
        )
        for webhook in webhooks
    )
    for delivery in deliveries:
        schedule_deliveries(delivery.webhook_id)
    return deliveries


def redeliver(delivery: WebhookDelivery) -> WebhookDelivery:
    """Send an event again, with all attempts. Receivers recognize it by its id."""
    repeated = WebhookDelivery.objects.create(
        webhook_id=delivery.webhook_id,
        event_id=delivery.event_id,
        event_type=delivery.event_type,
        payload=delivery.payload,
        next_attempt_at=timezone.now(),
        redelivery_of=delivery,
    )
    schedule_deliveries(repeated.webhook_id)
    return repeated


def schedule_deliveries(webhook_id: object, due_in_s: float = 0) -> None:
    """Schedule a webhook's due deliveries, now or later."""
    tenant_id = current_tenant_id()
    arguments: JsonObject = {"tenant": str(tenant_id), "webhook": str(webhook_id)}
    run_after_commit(WORK_TASK, arguments, tenant_id=tenant_id, due_in_s=due_in_s)
