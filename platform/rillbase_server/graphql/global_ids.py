"""Ids that are unique in the whole schema, as Relay wants them."""

from __future__ import annotations

import base64
import binascii
import json

from foundation.api.rendering import to_json
from foundation.errors import FieldProblem, InvalidBody
from foundation.json_types import JsonValue


def write(collection: str, key: JsonValue) -> str:
    """Return the global id of a document."""
    return base64.urlsafe_b64encode(to_json([collection, key])).decode().rstrip("=")


def read(text: str) -> tuple[str, JsonValue]:
    """Return the collection and the key in a global id."""
    padded = text.encode() + b"=" * (-len(text) % 4)
    try:
        collection, key = json.loads(base64.urlsafe_b64decode(padded))
    except (ValueError, TypeError, binascii.Error, RecursionError):
        raise _unknown() from None
    if not isinstance(collection, str):
        raise _unknown()
    return collection, key


def _unknown() -> InvalidBody:
    return InvalidBody(errors=[FieldProblem("/id", "invalid", "This is no id of this API.")])
