from typing import TypeAlias

__all__ = ["JsonError", "parse_json"]

_JsonValue: TypeAlias = (
    None | bool | int | float | str | list[_JsonValue] | dict[str, _JsonValue]
)

class JsonError(ValueError):
    """Why and where a JSON document was refused; `str()` of it is for people."""

    code: str
    offset: int
    line: int
    column: int
    pointer: str

def parse_json(
    body: bytes, *, max_depth: int = 100, max_values: int | None = None
) -> _JsonValue:
    """Return the JSON document in `body`, or raise `JsonError`.

    Stricter than the standard library: see `native/json`. Integers are exact; `-0` is a float,
    since only a float has its sign. `max_depth` bounds nesting, `max_values` the values in all.
    """
