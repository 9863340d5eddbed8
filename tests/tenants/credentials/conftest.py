from __future__ import annotations

import pytest


@pytest.fixture
def short_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reduce the constant duration of requests that fail on this machine."""
    from foundation.outbound import client

    monkeypatch.setattr(client, "PROBE_S", 0.2)
