"""Types of decoded JSON."""

from __future__ import annotations

from typing import TypeAlias, Union

JsonValue: TypeAlias = Union[
    None, bool, int, float, str, "list[JsonValue]", "dict[str, JsonValue]"
]
JsonObject: TypeAlias = dict[str, JsonValue]
