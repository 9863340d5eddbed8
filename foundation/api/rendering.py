"""Responses as compact JSON."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from uuid import UUID

import orjson
from rest_framework.renderers import BaseRenderer

from foundation.json_types import JsonValue


def timestamp(moment: datetime.datetime) -> str:
    """Return a moment as RFC 3339 in UTC with milliseconds."""
    utc = moment.astimezone(datetime.UTC)
    return utc.strftime("%Y-%m-%dT%H:%M:%S.") + f"{utc.microsecond // 1000:03d}Z"


def _plain(value: object) -> JsonValue:
    if isinstance(value, datetime.datetime):
        return timestamp(value)
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(f"{type(value).__name__} cannot be rendered as JSON")


#: Types that only `_plain` renders, so that all times have one form.
_OPTIONS = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS


def to_json(value: object) -> bytes:
    """Encode a response. Times and UUIDs become strings."""
    try:
        return orjson.dumps(value, _plain, _OPTIONS)
    except TypeError:
        # The library supports integers of at most 64 bits, and only strings as keys.
        return exact_json(value)


def exact_json(value: object) -> bytes:
    """Encode a client's value for one of our own parsers. A number that JSON lacks, such as an
    infinite one, is written in a form that they reject; `to_json` would make it null.
    """
    return json.dumps(value, default=_plain, ensure_ascii=False, separators=(",", ":")).encode()


class JsonRenderer(BaseRenderer):
    """The one renderer of the API."""

    media_type = "application/json"
    format = "json"
    charset = None

    def render(
        self,
        data: object,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, object] | None = None,
    ) -> bytes:
        return b"" if data is None else to_json(data)
