"""Types of decoded JSON."""

from __future__ import annotations

from typing import TypeAlias, Union

JsonValue: TypeAlias = Union[
    bool, int, float, str, "list[JsonValue]", "dict[str, JsonValue]", None
]  # fmt: skip
JsonObject: TypeAlias = dict[str, JsonValue]
