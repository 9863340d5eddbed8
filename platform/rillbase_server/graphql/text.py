"""Reads and writes the JSON of operations. The bytes of a REST handler's response are parsed, and
serialized again as GraphQL. For a page of documents, that takes longer than everything in between,
so the fastest library is used.
"""

from __future__ import annotations

import orjson

from foundation.api.rendering import to_json
from foundation.json_types import JsonValue


def read(text: bytes) -> JsonValue:
    """Parse a handler's response."""
    value: JsonValue = orjson.loads(text)
    return value


def write(value: JsonValue) -> bytes:
    """Serialize a value."""
    try:
        return orjson.dumps(value)
    except TypeError:
        # The library supports integers of at most 64 bits. JSON, and so a client's variables, has
        # no limit.
        return to_json(value)
