"""The promise that what was revoked is refused within a second.

Judged by when a request was sent, not by when its answer came: a server that is busy may answer
late, but nothing that was asked a second after the revocation may be let in.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from requests import Response

PROMISED_S = 1.0
PAUSE_S = 0.01


def refused_within_a_second(ask: Callable[[], Response]) -> None:
    """Ask until refused. Call it as soon as the revocation has been answered."""
    revoked_at = time.monotonic()
    while True:
        sent_at = time.monotonic()
        if ask().status_code == 401:
            return
        late_s = sent_at - revoked_at
        assert late_s <= PROMISED_S, f"let in {late_s:.2f} s after the revocation"
        time.sleep(PAUSE_S)
