"""Converts json and jsonb values to equivalent Extended JSON.

In Extended JSON, some objects represent values of other types, and literal ones cannot be escaped.
So a value with a key that begins with `$` is stored as text.
"""

from __future__ import annotations

import json
from json.encoder import encode_basestring as quote

from sources.mapping.cells import check_values
from sources.mapping.numbers import json_number


class _Number(str):
    """A number in its original spelling."""

    __slots__ = ()


class _NotPlain(Exception):
    """A key with a special meaning in Extended JSON."""


def plain_json(text: str) -> str:
    """Return JSON text as Extended JSON."""
    check_values(text)
    try:
        return _write(json.loads(text, parse_int=_Number, parse_float=_Number))
    except (_NotPlain, RecursionError):
        return quote(text)


def _write(value: object) -> str:
    if isinstance(value, _Number):
        return json_number(value, quote(value))
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{_key(key)}:{_write(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_write, value)) + "]"
    return {True: "true", False: "false", None: "null"}[value]  # type: ignore[index]


def _key(key: str) -> str:
    if key.startswith("$") or "\0" in key:
        raise _NotPlain
    return quote(key)
