"""Secrets and signatures of webhooks, as defined by Standard Webhooks (standardwebhooks.com).

A receiver recomputes HMAC-SHA-256 over `id.timestamp.body` with the webhook's secret. Secrets are
sealed at rest. During a rotation each message carries two signatures, one by each secret.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import hmac
import secrets
from collections.abc import Iterable

from foundation.sealing import seal, unseal
from tenants.models.webhook import Webhook

SECRET_PREFIX = "whsec_"
SECRET_BYTES = 32


def new_secret() -> bytes:
    """Generate a signing secret."""
    return secrets.token_bytes(SECRET_BYTES)


def secret_text(secret: bytes) -> str:
    """Return a secret in the form shown to its owner."""
    return SECRET_PREFIX + base64.b64encode(secret).decode()


def sign(secret: bytes, message_id: str, timestamp_s: int, body: bytes) -> str:
    """Return one signature with its version."""
    signed = f"{message_id}.{timestamp_s}.".encode() + body
    digest = hmac.new(secret, signed, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode()


def signed_headers(
    secrets_: Iterable[bytes], message_id: str, timestamp_s: int, body: bytes
) -> dict[str, str]:
    """Return the headers of a message, with a signature by each secret."""
    return {
        "Content-Type": "application/json",
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp_s),
        "webhook-signature": " ".join(sign(s, message_id, timestamp_s, body) for s in secrets_),
    }


PURPOSE = "webhook-secret"
#: How long messages are also signed with the secret before the last rotation.
OVERLAP = datetime.timedelta(hours=24)


def assign_secret(webhook: Webhook) -> str:
    """Set a new webhook's secret and return it as text. The caller saves the row."""
    secret = new_secret()
    webhook.sealed_secret = _seal(webhook, secret)
    return secret_text(secret)


def rotate(webhook: Webhook, now: datetime.datetime) -> str:
    """Replace the secret; the old one also signs until the overlap ends. The caller saves."""
    webhook.sealed_previous_secret = bytes(webhook.sealed_secret)
    webhook.previous_until = now + OVERLAP
    return assign_secret(webhook)


def signing_secrets(webhook: Webhook, now: datetime.datetime) -> list[bytes]:
    """Return the secrets that sign a message now, the current one first."""
    sealed = [bytes(webhook.sealed_secret)]
    if webhook.previous_until is not None and now < webhook.previous_until:
        sealed.append(bytes(webhook.sealed_previous_secret))
    return [unseal(s, purpose=PURPOSE, owner=str(webhook.pk)) for s in sealed]


def _seal(webhook: Webhook, secret: bytes) -> bytes:
    return seal(secret, purpose=PURPOSE, owner=str(webhook.pk))
