"""Positions as tenants see them.

The node counts positions across all tenants, so a number, or the difference of two, tells how much
others write. Tenants get a token instead: encrypted and authenticated under a key of the
installation, bound to the topic. The same position has the same token, so a client can tell a
publication that comes again; which of two comes first only the server can tell.
"""

from __future__ import annotations

from base64 import b64decode, urlsafe_b64encode
from functools import lru_cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from foundation.environment import environment

#: The length of a position's token.
CHARS = 32
_NUMBER_BYTES = 8
_KEY_BYTES = 64
_POSITION, _NAME = b"position", b"subscription"


class UnknownToken(ValueError):
    """The token is not one of this topic."""


def token_of(topic: str, position: int) -> str:
    """Return the token of a position in a topic, which is given by its name in the node."""
    return _sealed(_POSITION, topic, position.to_bytes(_NUMBER_BYTES))


def position_of(topic: str, token: str) -> int:
    """Return what a token stands for, or raise `UnknownToken`."""
    return int.from_bytes(_opened(_POSITION, topic, token))


def name_token(topic: str, name: str, position: int) -> str:
    """Return the token of a subscription: its name in the node, and where it began."""
    plain = position.to_bytes(_NUMBER_BYTES) + name.encode()
    return _sealed(_NAME, topic, plain)


def name_of(topic: str, token: str) -> tuple[str, int]:
    """Return what `name_token` was given, or raise `UnknownToken`."""
    plain = _opened(_NAME, topic, token)
    return plain[_NUMBER_BYTES:].decode(), int.from_bytes(plain[:_NUMBER_BYTES])


def _sealed(kind: bytes, topic: str, plain: bytes) -> str:
    sealed = _cipher().encrypt(plain, [kind, topic.encode()])
    return urlsafe_b64encode(sealed).decode().rstrip("=")


def _opened(kind: bytes, topic: str, token: str) -> bytes:
    try:
        padded = token + "=" * (-len(token) % 4)
        sealed = b64decode(padded, altchars=b"-_", validate=True)
        return _cipher().decrypt(sealed, [kind, topic.encode()])
    except (ValueError, InvalidTag):
        raise UnknownToken("This is not a token of this topic.") from None


def _cipher() -> AESSIV:
    return _cipher_of(environment().rillbase_secret_key.get_secret_value())


@lru_cache(maxsize=4)
def _cipher_of(secret: str) -> AESSIV:
    derived = HKDF(SHA256(), _KEY_BYTES, salt=None, info=b"rillbase-topic-positions")
    return AESSIV(derived.derive(secret.encode()))
