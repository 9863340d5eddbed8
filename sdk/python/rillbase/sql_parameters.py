"""The parameters of a statement, from Python's values to those that the server binds."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Mapping, Sequence

_MICROSECOND = datetime.timedelta(microseconds=1)


def bindable(
    parameters: Sequence[object] | Mapping[str, object],
) -> list[object] | dict[str, object]:
    """Return parameters that a statement's body can have."""
    if isinstance(parameters, Mapping):
        return {name: _value(value) for name, value in parameters.items()}
    return [_value(value) for value in parameters]


def _value(value: object) -> object:
    match value:
        case datetime.datetime():
            # Statements have the time zone UTC. Documents have milliseconds, tables microseconds.
            zoned = value if value.tzinfo is not None else value.replace(tzinfo=datetime.UTC)
            return {"$date": zoned.isoformat()}
        case datetime.date() | datetime.time():
            return value.isoformat()
        case datetime.timedelta():
            return f"{value // _MICROSECOND} microseconds"
        case uuid.UUID():
            return str(value)
        case list() | tuple():
            return [_value(item) for item in value]
        case _:
            return value
