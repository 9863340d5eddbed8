"""Celery tasks of webhooks."""

from __future__ import annotations

import datetime
from uuid import UUID

from django.db.models import Q
from django.utils import timezone

from foundation.scope import scoped
from foundation.tasks import task
from foundation.tasks.definition import PERIODIC
from tenants.models import Webhook, WebhookDelivery
from tenants.webhook_events import WORK_TASK, schedule_deliveries
from tenants.webhooks.delivery import deliver_due
from tenants.webhooks.handshake import HANDSHAKE_TASK, attempt_handshake

#: Longer than a webhook's turn and a worker's backlog usually take.
OVERDUE = datetime.timedelta(minutes=5)
MAX_WEBHOOKS = 1000


@task(name=WORK_TASK)
def deliver(*, tenant: str, webhook: str) -> None:
    """Make a webhook's due deliveries."""
    deliver_due(UUID(tenant), UUID(webhook))


@task(name=HANDSHAKE_TASK)
def handshake(*, tenant: str, webhook: str, url: str, number: int) -> None:
    """Ask a receiver whether it wants deliveries."""
    attempt_handshake(UUID(tenant), UUID(webhook), url, number)


@task(name="tenants.sweeps.forgotten_deliveries", policy=PERIODIC)
def wake_overdue() -> None:
    """Wake every webhook that has an overdue delivery and is not on hold: the broker may have lost
    its wake-up.
    """
    before = timezone.now() - OVERDUE
    overdue = WebhookDelivery.unscoped.using("relay").filter(
        Q(webhook__held_until=None) | Q(webhook__held_until__lt=before),
        state=WebhookDelivery.State.PENDING,
        next_attempt_at__lt=before,
        webhook__state=Webhook.State.ACTIVE,
    )
    webhooks = overdue.order_by().values_list("tenant_id", "webhook_id").distinct()
    for tenant_id, webhook_id in webhooks[:MAX_WEBHOOKS]:
        with scoped(tenant_id=tenant_id):
            schedule_deliveries(webhook_id)
