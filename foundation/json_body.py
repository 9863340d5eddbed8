"""Request bodies as JSON values, read strictly.

The parser is native (`native/json` says what is rejected and why); here its errors become the
API's error. Every part reads bodies through this function, so all agree on what JSON is.
"""

from __future__ import annotations

import rillbase_native
from foundation.errors import FieldProblem, MalformedJson
from foundation.json_types import JsonValue

MAX_DEPTH = 100
# The costliest two-byte value is an empty array: 56 bytes of memory and 8 for the reference to it.
# This limits one body to some 70 MB of memory, however large bodies may be.
MAX_VALUES = 1_000_000


def parse_json_body(data: bytes) -> JsonValue:
    """Return the document in `data`, or raise `MalformedJson` with the position and the reason."""
    try:
        return rillbase_native.parse_json(data, max_depth=MAX_DEPTH, max_values=MAX_VALUES)
    except rillbase_native.JsonError as refusal:
        detail = str(refusal)
        problem = FieldProblem(refusal.pointer, refusal.code, detail)
        raise MalformedJson(f"The body is not valid JSON: {detail}.", errors=[problem]) from None
