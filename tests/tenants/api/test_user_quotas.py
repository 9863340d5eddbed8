"""The quotas of one user also hold for concurrent calls."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from tests.caller import signed_in
from tests.make import make_user, unique

CALLS = 8


def _created_concurrently(call: Callable[[], requests.Response]) -> int:
    """Make concurrent calls. Return how many of them created something."""
    with ThreadPoolExecutor(CALLS) as pool:
        statuses = [c.result().status_code for c in [pool.submit(call) for _ in range(CALLS)]]
    assert set(statuses) == {201, 403}
    return statuses.count(201)


def test_a_user_owns_no_more_tenants_by_making_them_at_once(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenants.api.tenants.MAX_OWNED", 1)
    caller = signed_in(server, make_user())
    assert _created_concurrently(lambda: caller.post("/api/v1/tenants", {"slug": unique("t")})) == 1


def test_a_user_has_no_more_tokens_by_making_them_at_once(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenants.actions.tokens.MAX_TOKENS", 1)
    caller = signed_in(server, make_user())
    assert _created_concurrently(lambda: caller.post("/api/v1/me/tokens", {"name": "t"})) == 1
