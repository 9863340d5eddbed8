"""Checking a URL resolves its host while a caller waits, so too many concurrent checks are
rejected.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from foundation.outbound import OutboundClient, TargetTimeout
from foundation.outbound.client import CHECKS_AT_ONCE


class SlowNames:
    """A resolver whose name servers respond only when the test allows it."""

    def __init__(self) -> None:
        self.asked = threading.Semaphore(0)
        self.answer = threading.Event()

    def __call__(self, host: str, port: int, timeout_s: float) -> Sequence[str]:
        self.asked.release()
        self.answer.wait(timeout_s)
        return ["93.184.215.14"]


def test_hanging_lookups_delay_few_callers() -> None:
    names = SlowNames()
    client = OutboundClient(resolver=names)
    with ThreadPoolExecutor(CHECKS_AT_ONCE) as crowd:
        waiting = [crowd.submit(client.check, "https://a.example/") for _ in range(CHECKS_AT_ONCE)]
        for _ in waiting:
            assert names.asked.acquire(timeout=60)
        with pytest.raises(TargetTimeout, match="Too many"):
            client.check("https://b.example/")
        names.answer.set()
        for check in waiting:
            check.result()
    client.check("https://b.example/")
