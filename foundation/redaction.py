"""Takes secrets out of text and fields before they are logged.

Two nets: whatever is shaped like a credential, wherever it stands, and whatever stands under a
name that says it is one. Both would rather take out too much.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

REDACTED = "[redacted]"

_HINTS = ("rbk_", "rbp_", "rbt_", "whsec_", "://", "authorization", "bearer", "basic", "eyj")

_SECRET = re.compile(
    r"""
      (?P<key>rbk|rbp|rbt|whsec)_[A-Za-z0-9_+/=.~-]{4,}
    | (?P<header>(?i:(?:proxy-)?authorization))["']?\s*[:=]\s*["']?(?:[A-Za-z]+\s+)?[^\s"',;}]+
    | (?P<scheme>(?i:bearer|basic))\s+(?=\S*[0-9._~+/=-])[A-Za-z0-9._~+/=-]{6,}
    | ://(?P<user>[^/\s:@]*):[^/\s]*@
    | (?P<jwt>eyJ)[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?
    """,
    re.VERBOSE,
)

_SECRET_NAME = re.compile(
    r"passw|passphrase|secret|token|authorization|cookie|api_?-?key|pepper|credential|private_?key",
    re.IGNORECASE,
)


def redact(text: str) -> str:
    """Return the text with everything that is shaped like a credential replaced."""
    lowered = text.lower()
    if not any(hint in lowered for hint in _HINTS):
        return text
    return _SECRET.sub(_replacement, text)


def _replacement(found: re.Match[str]) -> str:
    if found["key"]:
        return f"{found['key']}_{REDACTED}"
    if found["header"]:
        return f"{found['header']}: {REDACTED}"
    if found["scheme"]:
        return f"{found['scheme']} {REDACTED}"
    if found["jwt"]:
        return REDACTED
    return f"://{found['user']}:{REDACTED}@"


@lru_cache(maxsize=1024)
def is_secret_name(name: str) -> bool:
    """Tell whether a field of this name holds a credential."""
    return _SECRET_NAME.search(name) is not None


def redact_fields(fields: Mapping[str, object]) -> dict[str, object]:
    """Return a copy of a mapping, nested ones included, without credentials."""
    return {
        redact(str(name)): REDACTED if is_secret_name(str(name)) else redact_value(value)
        for name, value in fields.items()
    }


def redact_value(value: object) -> object:
    """Return a value as it may be logged: JSON's types only, and no credentials."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if abs(value) < float("inf") else str(value)
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return redact_fields(value)
    if isinstance(value, list | tuple | set | frozenset):
        return [redact_value(item) for item in value]
    return redact(str(value))
