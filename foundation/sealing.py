"""Secrets that must be readable again, encrypted at rest.

Webhook signing secrets and shared JWT secrets are used, not only compared, so they cannot be
hashed. They are sealed with AES-256-GCM under a key that derives from the installation's secret key
and the purpose; the purpose and the row's id are authenticated, so a sealed value that is moved to
another row or column cannot be opened.
"""

from __future__ import annotations

import os
from functools import lru_cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from foundation.environment import environment

_NONCE_BYTES = 12


class SealBroken(RuntimeError):
    """A sealed value cannot be opened: wrong key, wrong row, or damaged."""


@lru_cache(maxsize=32)
def _cipher(secret: str, purpose: str) -> AESGCM:
    key = HKDF(SHA256(), 32, salt=None, info=b"rillbase-seal:" + purpose.encode()).derive(
        secret.encode()
    )
    return AESGCM(key)


def _cipher_for(purpose: str) -> AESGCM:
    return _cipher(environment().rillbase_secret_key.get_secret_value(), purpose)


def seal(plain: bytes, *, purpose: str, owner: str) -> bytes:
    """Encrypt `plain` for `owner` (the row's id)."""
    nonce = os.urandom(_NONCE_BYTES)
    return nonce + _cipher_for(purpose).encrypt(nonce, plain, owner.encode())


def unseal(sealed: bytes, *, purpose: str, owner: str) -> bytes:
    """Decrypt what `seal` made for the same purpose and owner."""
    try:
        return _cipher_for(purpose).decrypt(
            sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], owner.encode()
        )
    except InvalidTag as error:
        raise SealBroken(f"a sealed value ({purpose}) cannot be opened") from error
