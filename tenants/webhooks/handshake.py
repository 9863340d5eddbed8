"""Proof that a receiver wants the deliveries: it must echo a challenge.

Without it, anyone could point a webhook at another party's server. The challenge is a signed
`webhook.verification` message; the receiver responds with 2xx and the challenge, as JSON
(`{"challenge": "…"}`) or as plain text. Only the outcome is stored.
"""

from __future__ import annotations

import hmac
import json
import secrets
from uuid import UUID

from django.db.models import F
from django.utils import timezone

from foundation.api.rendering import timestamp
from foundation.ids import uuid7
from foundation.json_types import JsonObject
from foundation.scope import current_tenant_id, scoped
from foundation.tasks import run_after_commit
from tenants.models import Webhook
from tenants.webhooks.attempt import message_id, prove
from tenants.webhooks.locks import try_lock
from tenants.webhooks.state import activate

HANDSHAKE_TASK = "tenants.webhooks.handshake"
EVENT = "webhook.verification"
#: Pauses after failed handshakes: time to install the secret that was just shown.
PAUSES_S = (5, 15, 60, 300, 900)


def begin(webhook: Webhook) -> None:
    """Schedule the handshake for when this transaction has committed."""
    _schedule(webhook.pk, webhook.url, 1, 0)


def attempt_handshake(tenant_id: UUID, webhook_id: UUID, url: str, number: int) -> None:
    """Make handshake attempt `number` with a webhook that still waits for it at `url`."""
    with scoped(tenant_id=tenant_id):
        if not try_lock(webhook_id):
            _schedule(webhook_id, url, number, 1)
            return
        webhook = Webhook.objects.filter(
            pk=webhook_id, url=url, state=Webhook.State.PENDING
        ).first()
        if webhook is None:
            return
        challenge = secrets.token_urlsafe(32)
        wrong = prove(
            webhook,
            message_id(uuid7()),
            _message(challenge),
            lambda answer: echoes(answer, challenge),
        )
        if wrong is None:
            activate(webhook)
        else:
            _note_failure(webhook, wrong, number)


def echoes(answer: str, challenge: str) -> bool:
    """Return whether a response is the challenge, as JSON or as plain text."""
    text = answer.strip()
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        parsed = text
    echo = parsed.get("challenge") if isinstance(parsed, dict) else parsed
    return isinstance(echo, str) and hmac.compare_digest(echo.encode(), challenge.encode())


def _message(challenge: str) -> JsonObject:
    return {
        "type": EVENT,
        "timestamp": timestamp(timezone.now()),
        "tenant_id": str(current_tenant_id()),
        "data": {"challenge": challenge},
    }


def _note_failure(webhook: Webhook, reason: str, number: int) -> None:
    last = number > len(PAUSES_S)
    Webhook.objects.filter(pk=webhook.pk, url=webhook.url, state=Webhook.State.PENDING).update(
        state_reason=f"Handshake failed{' permanently' if last else ''}: {reason}"[:200],
        version=F("version") + 1,
    )
    if not last:
        _schedule(webhook.pk, webhook.url, number + 1, PAUSES_S[number - 1])


def _schedule(webhook_id: UUID, url: str, number: int, due_in_s: float) -> None:
    tenant_id = current_tenant_id()
    arguments: JsonObject = {
        "tenant": str(tenant_id),
        "webhook": str(webhook_id),
        "url": url,
        "number": number,
    }
    run_after_commit(HANDSHAKE_TASK, arguments, tenant_id=tenant_id, due_in_s=due_in_s)
