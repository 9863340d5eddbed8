"""Webhooks do not show what listens on the machine that sends them."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections

from foundation.outbound.client import PROBE_S
from tenants.models import Webhook
from tenants.webhooks.attempt import is_hidden
from tenants.webhooks.handshake import shake_hands
from tests.loopback_targets import loopback_targets
from tests.make import make_tenant
from tests.tenants.webhooks.hooks import make_webhook


def _attempt(url: str) -> tuple[str, float]:
    """Make a handshake as the task does; return what the tenant reads of it, and its time."""
    try:
        made = make_webhook(url, made=make_tenant(), state=Webhook.State.PENDING)
        began = time.monotonic()
        shake_hands(made.made.tenant.id, made.webhook.pk, url, 1)
        took_s = time.monotonic() - began
        return made.now().state_reason, took_s
    finally:
        connections.close_all()


def test_a_handshake_fails_alike_whatever_is_found_on_a_port_of_this_machine() -> None:
    with loopback_targets() as targets, ThreadPoolExecutor(len(targets)) as threads:
        found = dict(zip(targets, threads.map(_attempt, targets.values()), strict=True))
    reasons = {reason for reason, _ in found.values()}
    assert reasons == {"Handshake failed: The receiver did not echo the challenge."}, found
    assert all(took_s >= PROBE_S for _, took_s in found.values()), found


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
