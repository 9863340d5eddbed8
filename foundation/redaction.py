"""Takes secrets out of text and fields before they are logged.

Two rules: anything shaped like a credential, wherever it occurs, and anything under a name that
says it is one. Both err on the side of removing too much.

Text may be hostile, so the work is linear in its length: no character is examined from more than
a few of the places where a credential might begin. Long text is truncated; redaction covers the
part that is kept and enough after it to recognize any credential that begins in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from math import isfinite

REDACTED = "[redacted]"
MAX_TEXT_CHARS = 16 * 1024
#: No credential that this installation accepts is longer.
LONGEST_SECRET_CHARS = 16 * 1024

_HINTS = (
    "rbk_",
    "rbp_",
    "rbt_",
    "rbl_",
    "whsec_",
    "://",
    "authorization",
    "bearer",
    "basic",
    "eyj",
)

_SECRET = re.compile(
    r"""
      (?P<key>rbk|rbp|rbt|rbl|whsec)_[A-Za-z0-9_+/=.~-]{4,}
    | (?P<header>(?i:(?:proxy-)?authorization))["']?\s*[:=]\s*["']?(?:[A-Za-z]+\s+)?[^\s"',;}]+
    | (?P<scheme>(?i:bearer|basic))\s+(?=\S*[0-9._~+/=-])[A-Za-z0-9._~+/=-]{6,}
    | ://(?P<user>[^/\s:@]*):[^/\s]*@
    # From the start of a run of its characters only, and without backtracking within it: tried
    # from each `eyJ` to the end of the run, `eyJeyJeyJ…` would take quadratic time.
    | (?<![A-Za-z0-9_-])(?>(?P<before_jwt>[A-Za-z0-9_-]*?)eyJ[A-Za-z0-9_-]{4,})
      \.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?
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
    for hint in _HINTS:
        if hint in lowered:
            return _SECRET.sub(_replacement, text)
    return text


def shown(text: str) -> str:
    """Return the text as it may be logged: redacted and truncated."""
    if len(text) <= MAX_TEXT_CHARS:
        return redact(text)
    begin = redact(text[: MAX_TEXT_CHARS + LONGEST_SECRET_CHARS])[:MAX_TEXT_CHARS]
    return f"{begin}… ({len(text)} characters)"


def _replacement(match: re.Match[str]) -> str:
    if match["key"]:
        return f"{match['key']}_{REDACTED}"
    if match["header"]:
        return f"{match['header']}: {REDACTED}"
    if match["scheme"]:
        return f"{match['scheme']} {REDACTED}"
    if match["before_jwt"] is not None:
        return match["before_jwt"] + REDACTED
    return f"://{match['user']}:{REDACTED}@"


@lru_cache(maxsize=1024)
def is_secret_name(name: str) -> bool:
    """Return whether a field of this name holds a credential."""
    return _SECRET_NAME.search(name) is not None


def redact_fields(fields: Mapping[str, object]) -> dict[str, object]:
    """Return a copy of a mapping, nested ones included, without credentials."""
    return {
        shown(str(name)): REDACTED if is_secret_name(str(name)) else redact_value(value)
        for name, value in fields.items()
    }


def redact_value(value: object) -> object:
    """Return a value as it may be logged: JSON's types only, and no credentials."""
    if isinstance(value, str):
        return shown(value)
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return redact_fields(value)
    if isinstance(value, list | tuple | set | frozenset):
        return [redact_value(item) for item in value]
    return shown(str(value))
