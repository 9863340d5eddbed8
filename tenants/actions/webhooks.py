"""Register, verify, change, pause and rotate webhooks; repeat deliveries."""

from __future__ import annotations

import datetime
from collections.abc import Mapping

from django.utils import timezone

from foundation.api.rendering import timestamp
from foundation.errors import Conflict, FieldProblem, HandshakeFailed, TargetNotAllowed
from foundation.json_types import JsonObject, JsonValue
from foundation.outbound import OutboundError, TargetRefused, outbound_client
from tenants import audit, webhook_events
from tenants.models import Tenant, Webhook, WebhookDelivery
from tenants.principals import Principal
from tenants.quotas import ensure_room
from tenants.webhooks import handshake, signing, state

_TEST_DATA: JsonObject = {"message": "This test event was requested manually."}


def describe(webhook: Webhook) -> JsonObject:
    """Return a webhook as the API shows it: everything but its secret."""
    rotating = webhook.previous_until is not None and webhook.previous_until > timezone.now()
    return {
        "id": str(webhook.id),
        "name": webhook.name,
        "url": webhook.url,
        "events": webhook.events,
        "state": webhook.state,
        "state_reason": webhook.state_reason or None,
        "failing_since": _moment(webhook.failing_since),
        "previous_secret_until": _moment(webhook.previous_until if rotating else None),
        "created_at": timestamp(webhook.created_at),
        "updated_at": timestamp(webhook.updated_at),
    }


def describe_delivery(delivery: WebhookDelivery) -> JsonObject:
    """Return a delivery as the API shows it."""
    return {
        "id": str(delivery.id),
        "webhook_id": str(delivery.webhook_id),
        "event_id": str(delivery.event_id),
        "event_type": delivery.event_type,
        "payload": delivery.payload,
        "state": delivery.state,
        "attempts": delivery.attempts,
        "next_attempt_at": _moment(delivery.next_attempt_at),
        "last_status": delivery.last_status,
        "last_error": delivery.last_error or None,
        "last_answer": delivery.last_answer or None,
        "last_duration_ms": delivery.last_duration_ms,
        "created_at": timestamp(delivery.created_at),
        "finished_at": _moment(delivery.finished_at),
        "redelivery_of": str(delivery.redelivery_of_id) if delivery.redelivery_of_id else None,
    }


def do_create(
    principal: Principal, tenant: Tenant, values: Mapping[str, JsonValue]
) -> tuple[Webhook, str]:
    """Register a webhook and start the handshake. Return it with its secret."""
    ensure_room(tenant, "webhooks", Webhook.objects.all())
    webhook = Webhook(tenant_id=tenant.id, **values)
    text = signing.assign_secret(webhook)
    webhook.save(force_insert=True)
    handshake.begin(webhook)
    audit.record(principal, "webhook.created", _target(webhook), after=describe(webhook))
    return webhook, text


def do_change(principal: Principal, webhook: Webhook, changes: Mapping[str, JsonValue]) -> None:
    """Change a webhook. A new URL, or leaving `disabled`, requires a new handshake."""
    before = describe(webhook)
    new_state = changes.get("state", webhook.state)
    moved = changes.get("url", webhook.url) != webhook.url
    for field in {"name", "url", "events"} & set(changes):
        setattr(webhook, field, changes[field])
    if new_state != Webhook.State.DISABLED:
        if moved or webhook.state != new_state:
            _await_handshake(webhook)
    elif webhook.state != Webhook.State.DISABLED:
        webhook.state, webhook.state_reason = Webhook.State.DISABLED, "Disabled manually."
        state.abandon_deliveries(webhook)
    webhook.save_next_version()
    audit.record(
        principal, "webhook.updated", _target(webhook), before=before, after=describe(webhook)
    )


def do_delete(principal: Principal, webhook: Webhook) -> None:
    """Delete a webhook and its deliveries."""
    target, before = _target(webhook), describe(webhook)
    webhook.delete()
    audit.record(principal, "webhook.deleted", target, before=before)


def do_verify(principal: Principal, webhook: Webhook) -> None:
    """Restart the handshake with the full number of attempts."""
    if webhook.state != Webhook.State.PENDING:
        raise Conflict(f"The webhook is {webhook.state}; only a pending webhook can be verified.")
    _await_handshake(webhook)
    webhook.save_next_version()
    audit.record(principal, "webhook.verification_requested", _target(webhook))


def do_test(principal: Principal, webhook: Webhook) -> WebhookDelivery:
    """Send a test event, regardless of the webhook's event types."""
    _require_active(webhook)
    (delivery,) = webhook_events.deliver([webhook], webhook_events.TEST_EVENT, _TEST_DATA)
    audit.record(principal, "webhook.tested", _target(webhook))
    return delivery


def do_rotate_secret(principal: Principal, webhook: Webhook) -> str:
    """Replace a webhook's secret; the old one also signs for a while. Return the new one."""
    before = describe(webhook)
    text = signing.rotate(webhook, timezone.now())
    webhook.save_next_version()
    audit.record(
        principal,
        "webhook.secret_rotated",
        _target(webhook),
        before=before,
        after=describe(webhook),
    )
    return text


def do_redeliver(
    principal: Principal, webhook: Webhook, delivery: WebhookDelivery
) -> WebhookDelivery:
    """Send an event again as a new delivery."""
    _require_active(webhook)
    if delivery.state == WebhookDelivery.State.PENDING:
        raise Conflict("The delivery is still being attempted.")
    repeated = webhook_events.redeliver(delivery)
    audit.record(
        principal,
        "webhook.redelivered",
        audit.AuditTarget("webhook_delivery", str(repeated.id)),
        after={"redelivery_of": str(delivery.id), "webhook_id": str(webhook.id)},
    )
    return repeated


def _await_handshake(webhook: Webhook) -> None:
    webhook.state, webhook.state_reason = Webhook.State.PENDING, ""
    webhook.failing_since = webhook.held_until = None
    handshake.begin(webhook)


def _require_active(webhook: Webhook) -> None:
    if webhook.state == Webhook.State.PENDING:
        raise HandshakeFailed(webhook.state_reason or "The handshake is still in progress.")
    if webhook.state != Webhook.State.ACTIVE:
        raise Conflict("The webhook is disabled.")


def check_url(url: str) -> None:
    """Reject a URL that may never be called. One that is unreachable now may work later.

    This resolves the host name, so call it before locking any row.
    """
    try:
        outbound_client().check(url)
    except TargetRefused as error:
        problem = FieldProblem("/url", "target_not_allowed", str(error))
        raise TargetNotAllowed(str(error), errors=[problem]) from None
    except OutboundError:
        return  # the handshake will show


def _target(webhook: Webhook) -> audit.AuditTarget:
    return audit.AuditTarget("webhook", str(webhook.id))


def _moment(moment: datetime.datetime | None) -> str | None:
    return timestamp(moment) if moment else None
