"""JSON as the documentation shows it, where `…` stands for what differs each time or goes on."""

from __future__ import annotations

import json
import re
from typing import Any

_ELISIONS = (
    (re.compile(r',\s*"[^"]*":\s*…'), ""),
    (re.compile(r",\s*…"), ""),
    (re.compile(r"([\[{])\s*…\s*([\]}])"), r"\1\2"),
)


def read(text: str) -> list[Any]:
    """Read JSON values, one behind the other, in which `…` may stand for more of their parts."""
    for pattern, plain in _ELISIONS:
        text = pattern.sub(plain, text)
    decoder, values, at = json.JSONDecoder(), [], 0
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        value, at = decoder.raw_decode(text, at)
        values.append(value)
    return values


def check_shape(actual: object, shown: object, place: str = "") -> None:
    """Check that the actual value has all members that are shown, with the same kinds of values.

    Values differ each time; of a list, which may be empty, the first element is shown for all.
    """
    match shown:
        case dict():
            assert isinstance(actual, dict), f"{place}: {actual!r} is shown as {shown!r}"
            missing = shown.keys() - actual.keys()
            assert not missing, (
                f"{place}: {sorted(missing)} are shown, but only {actual!r} is there"
            )
            for name, value in shown.items():
                check_shape(actual[name], value, f"{place}/{name}")
        case list():
            assert isinstance(actual, list), f"{place}: {actual!r} is shown as {shown!r}"
            for first, value in zip(actual[:1], shown[:1], strict=False):
                check_shape(first, value, f"{place}/0")
        case bool() | int() | float() | str():
            numbers = (int, float)
            alike = isinstance(actual, numbers if isinstance(shown, numbers) else type(shown))
            assert alike, f"{place}: {actual!r} is shown as {shown!r}"
        case _:
            assert actual is None, f"{place}: {actual!r} is shown as null"
