"""Makes a webhook's deliveries, one after the other.

A task is only a wake-up for a webhook; the pending deliveries are in the database. So a duplicate
wake-up does no harm, nor does a lost one, since a sweep looks for forgotten deliveries.

Each attempt is one transaction that holds the webhook's lock, including the call to the receiver
(ten seconds at most): if the process dies, the lock is released, and the next worker to get a
message repeats the attempt at once.
"""

from __future__ import annotations

import datetime
import time
from enum import Enum, auto
from uuid import UUID

from django.db.models import F
from django.utils import timezone

from foundation.scope import scoped
from tenants import error_log
from tenants.models import Webhook, WebhookDelivery
from tenants.webhook_events import schedule_deliveries
from tenants.webhooks.attempt import DeliveryAttempt, message_id, send
from tenants.webhooks.locks import try_lock
from tenants.webhooks.schedule import (
    DeliveryVerdict,
    RetryDecision,
    decide_retry,
    hold_s,
    is_hopeless,
)
from tenants.webhooks.state import (
    FAILING_REASON,
    GONE_REASON,
    abandon_deliveries,
    disable,
)

#: After this time a task yields to those of other webhooks.
TURN_S = 10.0
#: Allowed clock skew between processes before a wake-up counts as too early.
CLOCK_SKEW = datetime.timedelta(seconds=1)


class DeliveryOutcome(Enum):
    """The result of one delivery attempt."""

    IDLE = auto()
    BUSY = auto()
    DELIVERED = auto()
    FAILED = auto()


def deliver_due(tenant_id: UUID, webhook_id: UUID, turn_s: float = TURN_S) -> None:
    """Deliver until nothing is due, an attempt fails, or the turn is over."""
    end = time.monotonic() + turn_s
    while time.monotonic() < end:
        with scoped(tenant_id=tenant_id):
            step = _deliver_next(webhook_id)
        if step in (DeliveryOutcome.BUSY, DeliveryOutcome.FAILED):
            return  # the lock's holder checks again; a failure schedules a wake-up
        # A wake-up that arrived while the lock was held had no effect; its delivery was committed
        # before, so checking once more after releasing the lock finds it.
        if step is DeliveryOutcome.IDLE and not _anything_due(tenant_id, webhook_id):
            return
    with scoped(tenant_id=tenant_id):
        schedule_deliveries(webhook_id)


def _anything_due(tenant_id: UUID, webhook_id: UUID) -> bool:
    with scoped(tenant_id=tenant_id):
        webhook = Webhook.objects.filter(pk=webhook_id).first()
        return webhook is not None and _first_due(webhook, timezone.now()) is not None


def _first_due(webhook: Webhook, now: datetime.datetime) -> WebhookDelivery | None:
    on_hold = webhook.held_until is not None and webhook.held_until > now + CLOCK_SKEW
    if on_hold or webhook.state != Webhook.State.ACTIVE:
        return None
    return (
        WebhookDelivery.objects.filter(
            webhook=webhook,
            state=WebhookDelivery.State.PENDING,
            next_attempt_at__lte=now + CLOCK_SKEW,
        )
        .order_by("next_attempt_at", "pk")
        .first()
    )


def _deliver_next(webhook_id: UUID) -> DeliveryOutcome:
    if not try_lock(webhook_id):
        return DeliveryOutcome.BUSY
    webhook = Webhook.objects.select_related("tenant").filter(pk=webhook_id).first()
    if webhook is None:
        return DeliveryOutcome.IDLE
    if webhook.state == Webhook.State.DISABLED:
        abandon_deliveries(webhook)
    delivery = _first_due(webhook, timezone.now())
    if delivery is None:
        return DeliveryOutcome.IDLE
    attempt = send(webhook, message_id(delivery.event_id), delivery.payload)
    return _record(webhook, delivery, attempt)


def _record(
    webhook: Webhook, delivery: WebhookDelivery, attempt: DeliveryAttempt
) -> DeliveryOutcome:
    """Record the result of an attempt, and schedule what follows."""
    now = timezone.now()
    after = decide_retry(attempt, delivery.attempts + 1)
    recorded = WebhookDelivery.objects.filter(pk=delivery.pk).update(
        attempts=F("attempts") + 1,
        last_status=attempt.status,
        last_error="" if attempt.successful else attempt.summary[:300],
        last_answer=attempt.answer,
        last_duration_ms=attempt.duration_ms,
        **_outcome(after, now),
    )
    if not recorded:
        return DeliveryOutcome.IDLE  # the webhook was deleted during the call
    if after.verdict is DeliveryVerdict.DELIVERED:
        _note_success(webhook)
        return DeliveryOutcome.DELIVERED
    error_log.note(
        webhook.tenant_id,
        error_log.Area.WEBHOOK,
        "webhook_delivery_failed",
        place=f"{webhook.name} ({delivery.event_type})",
        detail=attempt.summary,
        status=attempt.status,
    )
    if after.verdict is DeliveryVerdict.GONE:
        disable(webhook, GONE_REASON)
    else:
        _note_failure(webhook, after, now)
    return DeliveryOutcome.FAILED


def _outcome(after: RetryDecision, now: datetime.datetime) -> dict[str, object]:
    if after.verdict is DeliveryVerdict.RETRY:
        return {"next_attempt_at": now + datetime.timedelta(seconds=after.pause_s)}
    delivered = after.verdict is DeliveryVerdict.DELIVERED
    states = WebhookDelivery.State
    return {
        "state": states.DELIVERED if delivered else states.FAILED,
        "next_attempt_at": None,
        "finished_at": now,
    }


def _note_success(webhook: Webhook) -> None:
    if webhook.failing_since is not None:
        Webhook.objects.filter(pk=webhook.pk).update(
            failing_since=None, held_until=None, version=F("version") + 1
        )


def _note_failure(webhook: Webhook, after: RetryDecision, now: datetime.datetime) -> None:
    """Put all deliveries on hold, or disable the webhook if it has failed for too long."""
    since = webhook.failing_since or now
    if is_hopeless(now - since):
        disable(webhook, FAILING_REASON)
        return
    pause_s = hold_s(now - since)
    Webhook.objects.filter(pk=webhook.pk).update(
        failing_since=since,
        held_until=now + datetime.timedelta(seconds=pause_s),
        version=F("version") + int(webhook.failing_since is None),
    )
    schedule_deliveries(webhook.pk, due_in_s=pause_s)
    if after.verdict is DeliveryVerdict.RETRY and after.pause_s > pause_s:
        schedule_deliveries(webhook.pk, due_in_s=after.pause_s)
