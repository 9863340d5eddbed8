"""Opaque texts for clients, which contain JSON: global ids and cursors."""

from __future__ import annotations

import base64

from foundation.api.rendering import exact_json
from foundation.errors import MalformedJson
from foundation.json_body import parse_json_body
from foundation.json_types import JsonValue


class InvalidOpaqueText(Exception):
    """The text was not issued by this installation."""


def write(value: JsonValue) -> str:
    return base64.urlsafe_b64encode(exact_json(value)).decode().rstrip("=")


def read(text: str) -> JsonValue:
    """Return the value in a text, with or without padding, or raise `InvalidOpaqueText`."""
    unpadded = text.rstrip("=")
    padded = unpadded + "=" * (-len(unpadded) % 4)
    try:
        return parse_json_body(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, MalformedJson):
        raise InvalidOpaqueText from None
