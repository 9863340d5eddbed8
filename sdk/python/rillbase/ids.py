"""A document's `_id`: as a part of a URL, and as a key of dictionaries."""

from __future__ import annotations

import re
from urllib.parse import quote

from rillbase import ejson
from rillbase.values import ObjectId

_HEX_24 = re.compile(r"[0-9a-fA-F]{24}")


def segment(identity: object) -> str:
    """Return the part of a URL that represents an `_id`."""
    if isinstance(identity, ObjectId):
        return identity.hex
    if isinstance(identity, str) and _is_unambiguous(identity):
        return quote(identity, safe="")
    return "~" + quote(ejson.dumps(identity), safe="")


def _is_unambiguous(identity: str) -> bool:
    special = identity in ("", ".", "..") or identity.startswith("~")
    return not special and not _HEX_24.fullmatch(identity)


def key(identity: object) -> str:
    """Return the same text for equal ids."""
    return f"s{identity}" if isinstance(identity, str) else f"e{ejson.dumps(identity)}"
