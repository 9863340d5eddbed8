"""Overdue deliveries get a new wake-up, in case the broker lost the earlier one."""

from __future__ import annotations

import datetime

from django.db.models import Q
from django.utils import timezone

from foundation.scope import scoped
from foundation.tasks import task
from foundation.tasks.definition import PERIODIC
from tenants.models import Webhook, WebhookDelivery
from tenants.webhooks.events import wake

#: Longer than a webhook's turn and a worker's backlog usually take.
OVERDUE = datetime.timedelta(minutes=5)
MAX_WEBHOOKS = 1000


@task(name="tenants.sweeps.forgotten_deliveries", policy=PERIODIC)
def sweep() -> None:
    """Wake every webhook that has an overdue delivery and is not on hold."""
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
            wake(webhook_id)
