"""Creates webhooks and inspects their deliveries, bypassing the API."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from django.utils import timezone

from foundation.models import OutboxTask
from foundation.scope import scoped
from tenants import webhook_events
from tenants.models import Webhook, WebhookDelivery
from tenants.webhooks import signing
from tenants.webhooks.delivery import deliver_due
from tests.make import TenantAccount, make_tenant


@dataclass(frozen=True)
class WebhookSetup:
    """A webhook and its secret."""

    account: TenantAccount
    webhook: Webhook
    secret: str

    def now(self) -> Webhook:
        """Return the current row."""
        return Webhook.unscoped.using("relay").get(pk=self.webhook.pk)

    def announce(self, event_type: str = "api_key.created", **data: str) -> None:
        with scoped(tenant_id=self.account.tenant.id):
            webhook_events.announce(event_type, dict(data))

    def work(self) -> None:
        """Do what the task does."""
        deliver_due(self.account.tenant.id, self.webhook.pk)

    def deliveries(self) -> list[WebhookDelivery]:
        rows = WebhookDelivery.unscoped.using("relay").filter(webhook=self.webhook)
        return list(rows.order_by("pk"))

    def wake_ups_s(self) -> list[float]:
        """Return in how many seconds the scheduled wake-ups are due."""
        rows = OutboxTask.objects.using("relay").filter(
            name=webhook_events.WORK_TASK, arguments__webhook=str(self.webhook.pk), handed_to=""
        )
        now = timezone.now()
        return sorted((row.due_at - now).total_seconds() for row in rows)

    def let_pass(self, time: datetime.timedelta) -> None:
        """Advance the clock: make all recorded times that much earlier."""
        row = self.now()
        for name in ("failing_since", "held_until"):
            moment = getattr(row, name)
            setattr(row, name, moment - time if moment else None)
        row.save(using="relay")
        for delivery in self.deliveries():
            if delivery.next_attempt_at is not None:
                delivery.next_attempt_at -= time
                delivery.save(using="relay")


def make_webhook(
    url: str,
    *,
    account: TenantAccount | None = None,
    patterns: tuple[str, ...] = ("*",),
    state: str = Webhook.State.ACTIVE,
) -> WebhookSetup:
    """Create a webhook that needs no handshake."""
    account = account or make_tenant()
    webhook = Webhook(
        tenant_id=account.tenant.id, name="Hook", url=url, events=list(patterns), state=state
    )
    text = signing.assign_secret(webhook)
    with scoped(tenant_id=account.tenant.id):
        webhook.save()
    return WebhookSetup(account, webhook, text)
