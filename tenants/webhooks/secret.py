"""A webhook's signing secrets: sealed at rest, two of them during a rotation."""

from __future__ import annotations

import datetime

from foundation.sealing import seal, unseal
from tenants.models.webhook import Webhook
from tenants.webhooks.signing import new_secret, secret_text

PURPOSE = "webhook-secret"
#: How long messages are also signed with the secret before the last rotation.
OVERLAP = datetime.timedelta(hours=24)


def give_secret(webhook: Webhook) -> str:
    """Set a new webhook's secret and return it as text. The caller saves the row."""
    secret = new_secret()
    webhook.sealed_secret = _seal(webhook, secret)
    return secret_text(secret)


def rotate(webhook: Webhook, now: datetime.datetime) -> str:
    """Replace the secret; the old one also signs until the overlap ends. The caller saves."""
    webhook.sealed_previous_secret = bytes(webhook.sealed_secret)
    webhook.previous_until = now + OVERLAP
    return give_secret(webhook)


def signing_secrets(webhook: Webhook, now: datetime.datetime) -> list[bytes]:
    """Return the secrets that sign a message now, the current one first."""
    sealed = [bytes(webhook.sealed_secret)]
    if webhook.previous_until is not None and now < webhook.previous_until:
        sealed.append(bytes(webhook.sealed_previous_secret))
    return [unseal(s, purpose=PURPOSE, owner=str(webhook.pk)) for s in sealed]


def _seal(webhook: Webhook, secret: bytes) -> bytes:
    return seal(secret, purpose=PURPOSE, owner=str(webhook.pk))
