"""Key sets of issuers."""

from __future__ import annotations

import base64
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec


def jwk(key: ec.EllipticCurvePrivateKey, kid: str) -> dict[str, Any]:
    """Return the public half of a key, as a key set has it."""
    numbers = key.public_key().public_numbers()

    def text(number: int) -> str:
        return base64.urlsafe_b64encode(number.to_bytes(32, "big")).decode().rstrip("=")

    return {"kty": "EC", "crv": "P-256", "kid": kid, "x": text(numbers.x), "y": text(numbers.y)}
