"""The form of keys and tokens, and how they are stored.

A key reads `<prefix>_<env>_<keyid>_<secret><crc>`: prefix `rbk` (secret API key), `rbp`
(publishable key) or `rbt` (personal token), the installation's kind, a public id of 16 characters,
32 characters of secret and 6 of CRC-32. The checksum rejects typing errors before any lookup. Only
an HMAC-SHA-256 of the whole text under the server's pepper is stored: the secret has 190 random
bits, so a slow hash would add delay and no safety.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import string
import zlib
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from foundation.environment import environment
from foundation.errors import MalformedKey

ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
KEY_ID_CHARS = 16
SECRET_CHARS = 32
CHECKSUM_CHARS = 6

_ENVIRONMENT_TAGS = {"development": "dev", "test": "test", "production": "live"}
_FORM = re.compile(
    rf"\A(rbk|rbp|rbt)_(dev|test|live)_([0-9A-Za-z]{{{KEY_ID_CHARS}}})_"
    rf"([0-9A-Za-z]{{{SECRET_CHARS}}})([0-9A-Za-z]{{{CHECKSUM_CHARS}}})\Z"
)


class Prefix(StrEnum):
    """What kind of credential a key is."""

    SECRET = "rbk"
    PUBLISHABLE = "rbp"
    PERSONAL = "rbt"


@dataclass(frozen=True, slots=True)
class ParsedKey:
    """A key with valid format and checksum. The lookup determines whether it is valid."""

    prefix: Prefix
    key_id: str
    text: str

    def __repr__(self) -> str:
        return f"<ParsedKey {self.prefix}_…_{self.key_id}>"


def mint(prefix: Prefix) -> ParsedKey:
    """Create a new key for this installation."""
    tag = _ENVIRONMENT_TAGS[environment().rillbase_env]
    key_id = _random_text(KEY_ID_CHARS)
    body = f"{prefix}_{tag}_{key_id}_{_random_text(SECRET_CHARS)}"
    return ParsedKey(prefix, key_id, body + checksum(body))


def parse(text: str) -> ParsedKey:
    """Check the format and checksum of a key, or raise `MalformedKey`."""
    form = _FORM.match(text)
    if form is None:
        raise MalformedKey("The key does not have the form of a Rillbase key.")
    if checksum(text[:-CHECKSUM_CHARS]) != form[5]:
        raise MalformedKey("The key's checksum is wrong: the key is mistyped or truncated.")
    return ParsedKey(Prefix(form[1]), form[3], text)


def stored_hash(text: str) -> bytes:
    """Return the stored form of a key or another random secret."""
    return hmac.new(_pepper(), text.encode(), hashlib.sha256).digest()


def matches(text: str, stored: bytes) -> bool:
    """Compare a presented secret with its stored hash, in constant time."""
    return hmac.compare_digest(stored_hash(text), stored)


def random_token() -> str:
    """Return 43 characters of randomness for links and cookies."""
    return secrets.token_urlsafe(32)


def checksum(body: str) -> str:
    """Return the CRC-32 of a key's body in six characters of base 62."""
    number = zlib.crc32(body.encode())
    digits = ""
    for _ in range(CHECKSUM_CHARS):
        number, digit = divmod(number, len(ALPHABET))
        digits = ALPHABET[digit] + digits
    return digits


def _random_text(chars: int) -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(chars))


@lru_cache(maxsize=1)
def _pepper() -> bytes:
    return environment().rillbase_key_pepper.get_secret_value().encode()
