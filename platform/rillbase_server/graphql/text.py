"""JSON as operations read and write it.

An answer is read from the REST handler's bytes and written once more as GraphQL's. For a page of
documents that takes longer than all that GraphQL does in between, so the fastest library does it.
"""

from __future__ import annotations

import orjson

from foundation.api.rendering import to_json
from foundation.json_types import JsonValue


def read(text: bytes) -> JsonValue:
    """Return the value that a handler has answered."""
    value: JsonValue = orjson.loads(text)
    return value


def write(value: JsonValue) -> bytes:
    """Return a value's text."""
    try:
        return orjson.dumps(value)
    except TypeError:
        # It has whole numbers of at most 64 bits; JSON, and so a client's variable, has any.
        return to_json(value)
