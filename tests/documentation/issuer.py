"""An issuer of end users' tokens, which signs what a provider's documentation says it signs."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from tests.http_receiver import receiver

Json = dict[str, Any]
LIFETIME_S = 300


def _number(value: int, size: int) -> str:
    return base64.urlsafe_b64encode(value.to_bytes(size, "big")).decode().rstrip("=")


class LocalIssuer:
    """Signs as its registration says: with a secret, or with a key of the set that it serves."""

    def __init__(self, jwks_url: str) -> None:
        self._jwks_url = jwks_url
        self._rsa = rsa.generate_private_key(65537, 2048)
        self._ec = ec.generate_private_key(ec.SECP256R1())
        self._registration: Json = {}

    def adopt(self, registration: Json) -> Json:
        """Take the place of the issuer of a page: only its keys are elsewhere."""
        self._registration = registration
        moved = {"jwks_url": self._jwks_url} if "jwks_url" in registration else {}
        return registration | moved

    @property
    def is_registered(self) -> bool:
        return bool(self._registration)

    @property
    def claims(self) -> Json:
        """The claims that the registration requires."""
        registered = self._registration
        return {"iss": registered["issuer"], "aud": registered["audience"], "sub": "ada", "exp": 0}

    def sign(self, claims: Json) -> str:
        """Return a token with these claims, which is valid now."""
        (algorithm,) = self._registration["algorithms"]
        return self.sign_with(self._key(algorithm), algorithm, claims)

    @staticmethod
    def sign_with(key: Any, algorithm: str, claims: Json) -> str:
        now = int(time.time())
        times = {"iat": now, "nbf": now - 10, "auth_time": now - 10, "exp": now + LIFETIME_S}
        current = {name: at for name, at in times.items() if name in claims}
        return jwt.encode(claims | current, key, algorithm, headers={"kid": algorithm})

    def _key(self, algorithm: str) -> Any:
        keys = {"RS256": self._rsa, "ES256": self._ec}
        return keys.get(algorithm) or self._registration["secret"]

    def key_set(self) -> bytes:
        """Return the JWKS document. As with Keycloak's, one of the keys is not for signatures."""
        public, point = self._rsa.public_key().public_numbers(), self._ec.public_key()
        numbers = {"kty": "RSA", "n": _number(public.n, 256), "e": _number(public.e, 3)}
        at = point.public_numbers()
        curve = {"kty": "EC", "crv": "P-256", "x": _number(at.x, 32), "y": _number(at.y, 32)}
        keys = [
            {"kid": "enc", "use": "enc", "alg": "RSA-OAEP", **numbers},
            {"kid": "RS256", "use": "sig", "alg": "RS256", **numbers},
            {"kid": "ES256", "use": "sig", "alg": "ES256", **curve},
        ]
        return json.dumps({"keys": keys}).encode()


@contextmanager
def local_issuer() -> Iterator[LocalIssuer]:
    """Serve the key set until the block ends."""
    with receiver() as http:
        issuer = LocalIssuer(http.url)
        http.answer(200, issuer.key_set())
        yield issuer
