"""Webhooks do not reveal what listens on the machine that sends them."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections

from foundation.outbound.client import PROBE_S
from tenants.models import Webhook
from tenants.webhooks.attempt import is_hidden
from tenants.webhooks.handshake import attempt_handshake
from tests.loopback_targets import loopback_targets
from tests.make import make_tenant
from tests.tenants.webhooks.hooks import make_webhook


def _attempt(url: str) -> tuple[str, float]:
    """Make a handshake as the task does; return the result that the tenant sees, and its
    duration.
    """
    try:
        account = make_webhook(url, account=make_tenant(), state=Webhook.State.PENDING)
        began = time.monotonic()
        attempt_handshake(account.account.tenant.id, account.webhook.pk, url, 1)
        took_s = time.monotonic() - began
        return account.now().state_reason, took_s
    finally:
        connections.close_all()


def test_failures_of_a_handshake_do_not_reveal_what_listens_on_this_machine() -> None:
    with loopback_targets() as targets, ThreadPoolExecutor(len(targets)) as threads:
        result = dict(zip(targets, threads.map(_attempt, targets.values()), strict=True))
    reasons = {reason for reason, _ in result.values()}
    assert reasons == {"Handshake failed: The receiver did not echo the challenge."}, result
    assert all(took_s >= PROBE_S for _, took_s in result.values()), result


@pytest.mark.parametrize(
    ("url", "is_internal", "hidden"),
    [
        ("https://hooks.example/", False, False),
        ("https://hooks.example/", True, True),
        ("https://127.0.0.1.example/", True, True),
        ("http://127.0.0.1:8000/", True, False),
        ("http://[::1]:8000/", True, False),
        ("http://localhost:8000/", True, False),
        ("http://10.0.0.1/", True, True),
    ],
)
def test_answers_of_a_name_that_leads_to_this_machine_are_hidden(
    url: str,
    is_internal: bool,  # noqa: FBT001 -- columns of a table
    hidden: bool,  # noqa: FBT001
) -> None:
    assert is_hidden(url, is_internal=is_internal) is hidden
