"""Deliveries whose wake-up the broker has lost are delivered nevertheless."""

from __future__ import annotations

import base64
import datetime
import json

import redis

from foundation.environment import environment
from foundation.models import OutboxTask
from tenants.models import Webhook
from tenants.webhooks.tasks import wake_overdue
from tests.tenants.webhooks.hooks import WebhookSetup, make_webhook
from tests.waiting import wait_until

HOUR = datetime.timedelta(hours=1)


def _wake_ups(hook: WebhookSetup) -> int:
    """Return how many wake-ups of a webhook have arrived in the broker. No worker runs here."""
    waiting = OutboxTask.objects.using("relay").filter(
        arguments__webhook=str(hook.webhook.pk), handed_to=""
    )
    wait_until(lambda: not waiting.exists(), what="wake-ups to be handed over")
    with redis.Redis.from_url(environment().broker) as broker:
        messages = [json.loads(raw) for raw in broker.lrange("webhooks", 0, -1)]
    bodies = (base64.b64decode(message["body"]).decode() for message in messages)
    return sum(str(hook.webhook.pk) in body for body in bodies)


def _overdue_webhook() -> WebhookSetup:
    hook = make_webhook("https://example.test")
    hook.announce()
    hook.let_pass(HOUR)
    return hook


def test_a_webhook_with_an_overdue_delivery_is_woken_again() -> None:
    hook = _overdue_webhook()
    already = _wake_ups(hook)
    wake_overdue()
    assert _wake_ups(hook) == already + 1


def test_webhooks_that_wait_for_a_retry_are_not_woken() -> None:
    fresh = make_webhook("https://example.test")
    fresh.announce()
    disabled, held = _overdue_webhook(), _overdue_webhook()
    rows = Webhook.unscoped.using("relay")
    rows.filter(pk=disabled.webhook.pk).update(state=Webhook.State.DISABLED)
    delivery = held.deliveries()[0]
    assert delivery.next_attempt_at is not None
    rows.filter(pk=held.webhook.pk).update(held_until=delivery.next_attempt_at + 2 * HOUR)
    hooks = (fresh, disabled, held)
    already = [_wake_ups(hook) for hook in hooks]
    wake_overdue()
    assert [_wake_ups(hook) for hook in hooks] == already
