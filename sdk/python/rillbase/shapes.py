"""The shapes of documents and of what is asked of them."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

#: A JSON object whose members only its owner knows.
Document: TypeAlias = dict[str, Any]
Direction: TypeAlias = Literal[1, -1]

#: `connecting` until the first answer or while coming back, `live` when silence means that nothing
#: changes, `stale` when what is shown may be old, `offline` while there is no connection.
State: TypeAlias = Literal["connecting", "live", "stale", "offline", "failed"]
