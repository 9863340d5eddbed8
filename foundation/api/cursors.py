"""Keyset pagination: each page continues after the last row of the one before.

A cursor holds the sort key of that row, authenticated together with the name of the list and its
filters: a cursor that is forged, or from another list or tenant, is rejected. The cost of a page
does not depend on its position.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from typing import TypeVar

from django.db import models
from django.http import HttpRequest

from foundation.environment import environment
from foundation.errors import FieldProblem, InvalidCursor, InvalidParameter
from foundation.json_types import JsonObject

DEFAULT_LIMIT = 50
MAX_LIMIT = 200
_MAX_LIMIT_CHARS = 9
_TAG_BYTES = 16
_MAX_CURSOR_CHARS = 1000


R = TypeVar("R", bound=models.Model)


def page(
    request: HttpRequest,
    rows: models.QuerySet[R],
    render: Callable[[R], JsonObject],
    *,
    name: str,
    newest_first: bool = True,
) -> JsonObject:
    """Return one page of `rows`, sorted by id. `name` tells lists apart, tenant included."""
    limit = page_size(request)
    after = request.GET.get("cursor")
    bound = binding(name, request.GET)
    if after:
        last = _open(after, bound)
        rows = rows.filter(pk__lt=last) if newest_first else rows.filter(pk__gt=last)
    page_rows = list(rows.order_by("-pk" if newest_first else "pk")[: limit + 1])
    more = len(page_rows) > limit
    page_rows = page_rows[:limit]
    return {
        "items": [render(row) for row in page_rows],
        "next_cursor": _seal(str(page_rows[-1].pk), bound) if more else None,
    }


def page_size(request: HttpRequest) -> int:
    """Return how many rows a page of the list has."""
    text = request.GET.get("limit", str(DEFAULT_LIMIT))
    plain = text.isascii() and text.isdigit() and len(text) <= _MAX_LIMIT_CHARS
    number = int(text) if plain else 0
    if not 1 <= number <= MAX_LIMIT:
        problem = FieldProblem("limit", "invalid", f"A whole number from 1 to {MAX_LIMIT}.")
        raise InvalidParameter(errors=[problem])
    return number


def binding(name: str, parameters: Mapping[str, str]) -> bytes:
    """Return the binding of a cursor: the list and its filters."""
    filters = {k: v for k, v in parameters.items() if k not in ("cursor", "limit")}
    return json.dumps([name, filters], sort_keys=True).encode()


def _tag(payload: bytes, bound: bytes) -> bytes:
    key = environment().rillbase_secret_key.get_secret_value().encode()
    return hmac.new(key, b"cursor:" + bound + b"\0" + payload, hashlib.sha256).digest()[:_TAG_BYTES]


def _seal(last: str, bound: bytes) -> str:
    return seal(last.encode(), bound)


def seal(payload: bytes, bound: bytes) -> str:
    """Return a cursor that holds `payload` and is valid only together with `bound`."""
    return base64.urlsafe_b64encode(_tag(payload, bound) + payload).decode().rstrip("=")


def _open(cursor: str, bound: bytes) -> str:
    if len(cursor) > _MAX_CURSOR_CHARS:
        raise InvalidCursor
    return open_sealed(cursor, bound).decode()


def open_sealed(cursor: str, bound: bytes) -> bytes:
    """Return what a cursor holds, or raise `InvalidCursor`."""
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except ValueError:
        raise InvalidCursor("The cursor is damaged.") from None
    tag, payload = raw[:_TAG_BYTES], raw[_TAG_BYTES:]
    if not hmac.compare_digest(tag, _tag(payload, bound)):
        raise InvalidCursor("The cursor belongs to another list, or to other filters.")
    return payload
