"""State changes of a webhook that no caller requested."""

from __future__ import annotations

from django.db.models import F
from django.utils import timezone

from tenants import audit, error_log
from tenants.mail import MailTemplate, post
from tenants.models import Membership, Webhook, WebhookDelivery
from tenants.roles import Role

GONE_REASON = "The receiver responded with 410 Gone."
FAILING_REASON = "Every delivery has failed for three days."


def activate(webhook: Webhook) -> None:
    """Activate a webhook that has confirmed. Does nothing if it has changed since."""
    changed = Webhook.objects.filter(
        pk=webhook.pk, url=webhook.url, state=Webhook.State.PENDING
    ).update(
        state=Webhook.State.ACTIVE,
        state_reason="",
        failing_since=None,
        held_until=None,
        version=F("version") + 1,
        updated_at=timezone.now(),
    )
    if changed:
        audit.record(
            None,
            "webhook.activated",
            audit.AuditTarget("webhook", str(webhook.pk)),
            before={"state": Webhook.State.PENDING.value},
            after={"state": Webhook.State.ACTIVE.value},
        )


def disable(webhook: Webhook, reason: str) -> None:
    """Stop deliveries to a receiver that is gone, and notify the tenant's admins."""
    changed = Webhook.objects.filter(pk=webhook.pk, state=Webhook.State.ACTIVE).update(
        state=Webhook.State.DISABLED,
        state_reason=reason,
        version=F("version") + 1,
        updated_at=timezone.now(),
    )
    if not changed:
        return
    abandon_deliveries(webhook)
    error_log.note(
        webhook.tenant_id,
        error_log.Area.WEBHOOK,
        "webhook_disabled",
        place=webhook.name,
        detail=reason,
    )
    audit.record(
        None,
        "webhook.disabled",
        audit.AuditTarget("webhook", str(webhook.pk)),
        before={"state": Webhook.State.ACTIVE.value},
        after={"state": Webhook.State.DISABLED.value, "state_reason": reason},
    )
    _notify_admins(webhook, reason)


def abandon_deliveries(webhook: Webhook) -> None:
    """Abandon pending deliveries of a disabled webhook. Each can be redelivered on request."""
    WebhookDelivery.objects.filter(webhook=webhook, state=WebhookDelivery.State.PENDING).update(
        state=WebhookDelivery.State.FAILED,
        last_error="The webhook was disabled.",
        next_attempt_at=None,
        finished_at=timezone.now(),
    )


def _notify_admins(webhook: Webhook, reason: str) -> None:
    admins = Membership.objects.filter(role__in=(Role.ADMIN, Role.OWNER)).select_related("user")
    for membership in admins:
        post(
            MailTemplate.WEBHOOK_DISABLED,
            membership.user.email,
            tenant_id=webhook.tenant_id,
            tenant=webhook.tenant.name,
            webhook=webhook.name,
            reason=reason,
        )
