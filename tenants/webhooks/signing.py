"""Signatures as Standard Webhooks (standardwebhooks.com) defines them.

A receiver recomputes HMAC-SHA-256 over `id.timestamp.body` with the webhook's secret. During a
rotation each message carries two signatures, one by each secret.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Iterable

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
