"""Close codes: the reason why a connection is closed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from foundation.errors import ApiError

UNAUTHENTICATED, FORBIDDEN, TOO_MANY = 4401, 4403, 4429
TOO_BIG, RESTART, BAD_MESSAGE, BROKEN = 1009, 1012, 1008, 1011
_BY_STATUS = {401: UNAUTHENTICATED, 413: TOO_BIG, 429: TOO_MANY}


@dataclass(frozen=True, slots=True)
class CloseReason:
    """How a connection ends. `error`, if there is one, is sent first."""

    code: int
    reason: str
    error: ApiError | None = None

    #: The client has disconnected: nothing is sent.
    GONE: ClassVar[CloseReason]


CloseReason.GONE = CloseReason(1000, "")


def code_for(error: ApiError) -> int:
    """Return the close code for an error that ends a connection."""
    if error.status in _BY_STATUS:
        return _BY_STATUS[error.status]
    if error.status in (403, 404, 410):
        return FORBIDDEN
    return BROKEN if error.status >= 500 else BAD_MESSAGE  # noqa: PLR2004 -- HTTP's classes
