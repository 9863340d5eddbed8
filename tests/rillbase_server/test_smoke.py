"""The checks of `helm test`, and how it evaluates the responses."""

from __future__ import annotations

import pytest

from rillbase_server import smoke
from tests.realtime.live.conftest import running
from tests.waiting import wait_until


def test_a_healthy_server_passes(
    server: str, valkey_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    # Readiness includes the grid. A server that answers late, on a busy machine, counts as away.
    with running(server, valkey_url):
        wait_until(lambda: smoke.main([server + "/"]) == 0, what="all answers to be right")
    assert "responds as expected" in capsys.readouterr().out


def test_wrong_responses_are_reported(
    server: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answered = smoke.fetch

    def open_to_all(url: str) -> tuple[int, bytes]:
        return (200, b"[]") if url.endswith("/tenants") else answered(url)

    monkeypatch.setattr(smoke, "fetch", open_to_all)
    assert smoke.main([server]) == 1
    assert "/api/v1/tenants responded with 200 instead of 401" in capsys.readouterr().out
