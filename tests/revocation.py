"""The guarantee that revoked credentials are rejected within a second.

The time at which a request was sent counts, not that of its response: a busy server may respond
late, but must reject all requests sent more than a second after the revocation.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from requests import Response

PROMISED_S = 1.0
PAUSE_S = 0.01


def refused_within_a_second(ask: Callable[[], Response]) -> None:
    """Send requests until one is rejected. Call this immediately after the response to the
    revocation.
    """
    revoked_at = time.monotonic()
    while True:
        sent_at = time.monotonic()
        if ask().status_code == 401:
            return
        late_s = sent_at - revoked_at
        assert late_s <= PROMISED_S, f"accepted {late_s:.2f} s after the revocation"
        time.sleep(PAUSE_S)
