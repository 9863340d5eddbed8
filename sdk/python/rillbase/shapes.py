"""The shapes of documents and queries."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

#: A JSON object with arbitrary members.
Document: TypeAlias = dict[str, Any]
Direction: TypeAlias = Literal[1, -1]

#: `connecting` until the first answer or during a reconnect, `live` if silence means that nothing
#: has changed, `stale` if the answer may be outdated, `offline` while there is no connection.
State: TypeAlias = Literal["connecting", "live", "stale", "offline", "failed"]
