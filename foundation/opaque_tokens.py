"""Encrypts numbers that all tenants share before tenants see them.

Counters of the storage node, positions in logs and transaction ids are counted across all tenants,
so one of them, or the difference of two, reveals how much others write. Tenants get a token
instead: encrypted and authenticated under a key of the installation. Equal values have equal
tokens.
"""

from __future__ import annotations

from base64 import b64decode, urlsafe_b64encode
from functools import lru_cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from foundation.environment import environment

_KEY_BYTES = 64


class UnknownToken(ValueError):
    """The token was not issued by this installation for this purpose."""


def write(purpose: str, plain: bytes, *bound: bytes) -> str:
    """Return the token of a value, bound to its purpose."""
    sealed = _cipher(purpose).encrypt(plain, list(bound))
    return urlsafe_b64encode(sealed).decode().rstrip("=")


def read(purpose: str, token: str, *bound: bytes) -> bytes:
    """Return the value that was passed to `write`, or raise `UnknownToken`."""
    try:
        sealed = b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        return _cipher(purpose).decrypt(sealed, list(bound))
    except (ValueError, InvalidTag):
        raise UnknownToken("The token was not issued by this server.") from None


def _cipher(purpose: str) -> AESSIV:
    return _cipher_of(environment().rillbase_secret_key.get_secret_value(), purpose)


@lru_cache(maxsize=16)
def _cipher_of(secret: str, purpose: str) -> AESSIV:
    derived = HKDF(SHA256(), _KEY_BYTES, salt=None, info=purpose.encode())
    return AESSIV(derived.derive(secret.encode()))
