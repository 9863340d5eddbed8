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


def covers(found: object, shown: object, place: str = "") -> None:
    """Check that what was found has all the members that are shown, of the kinds that are shown.

    Values differ each time; of a list, which may be empty, the first element is shown for all.
    """
    match shown:
        case dict():
            assert isinstance(found, dict), f"{place}: {found!r} is shown as {shown!r}"
            missing = shown.keys() - found.keys()
            assert not missing, f"{place}: {sorted(missing)} are shown, but only {found!r} is there"
            for name, value in shown.items():
                covers(found[name], value, f"{place}/{name}")
        case list():
            assert isinstance(found, list), f"{place}: {found!r} is shown as {shown!r}"
            for first, value in zip(found[:1], shown[:1], strict=False):
                covers(first, value, f"{place}/0")
        case bool() | int() | float() | str():
            numbers = (int, float)
            alike = isinstance(found, numbers if isinstance(shown, numbers) else type(shown))
            assert alike, f"{place}: {found!r} is shown as {shown!r}"
        case _:
            assert found is None, f"{place}: {found!r} is shown as null"
