"""Generates ids for events without one, so that a repeated call adds them once. An event's id is
valid for a day. An older event cannot have one; a call with an idempotency key and such events is
protected only by its recorded response.
"""

from __future__ import annotations

import datetime
import time

from data_plane.calls import Call
from foundation.api.idempotency import HEADER, check_form, digest
from foundation.api.rendering import to_json
from rillbase_native import Value

ID = "event_id"
#: Events whose names the node still knows, with an hour to spare for clocks.
KNOWN_MS = 23 * 3_600_000
_KEY_CHARS = 40


class EventNamer:
    """Gives the events of one call their names."""

    def __init__(self, call: Call, time_field: str | None) -> None:
        self._stem = _stem(call)
        self._time_field = time_field
        self._oldest_ms = time.time() * 1000 - KNOWN_MS
        #: Whether every event so far has a name, so that the call may be sent again.
        self.all_named = True

    def named(self, event: Value, number: int) -> bytes:
        """Return an event as JSON, with an id if it may have one."""
        text = event.ejson()
        if event.get(ID) is not None:
            return text
        if self._stem is None or not self._is_recent(event):
            self.all_named = False
            return text
        head = b'{"%b":%b' % (ID.encode(), to_json(f"{self._stem}-{number}"))
        return head + (b"}" if text == b"{}" else b"," + text[1:])

    def _is_recent(self, event: Value) -> bool:
        value = event.get(self._time_field) if self._time_field is not None else None
        if value is None or value.is_null:
            return True
        moment = _milliseconds(value)
        return moment is None or moment > self._oldest_ms


def _stem(call: Call) -> str | None:
    """Return the prefix of the ids of an idempotency key's events."""
    key = call.head.headers.get(HEADER)
    if key is None:
        return None
    check_form(key)
    hashed = digest(str(call.tenant.id), call.principal.actor, call.head.path, key)
    return f"key-{hashed.hex()[:_KEY_CHARS]}"


def _milliseconds(value: Value) -> float | None:
    """Parse a time; None: the node reports the error."""
    try:
        if value.kind == "string":
            return datetime.datetime.fromisoformat(value.text()).timestamp() * 1000
        return float(value.integer())
    except (TypeError, ValueError, OverflowError):
        return None
