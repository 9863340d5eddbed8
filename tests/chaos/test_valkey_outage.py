"""Valkey becomes unavailable and returns: the API continues, and no task is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from foundation.models import OutboxTask
from rillbase_server.launcher.ports import free_port
from rillbase_server.web_process import HTTP_PROTOCOL, WEBSOCKET_PROTOCOL
from tests.caller import Caller, signed_in, with_key
from tests.make import TenantAccount, make_tenant
from tests.own_valkey import OwnValkey
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def web(valkey: OwnValkey, tmp_path: Path) -> Iterator[str]:
    """A separate web process on a Valkey that the test can kill."""
    port = free_port()
    argv = [sys.executable, "-m", "uvicorn", "rillbase_server.asgi:application"]
    argv += ["--http", HTTP_PROTOCOL, "--ws", WEBSOCKET_PROTOCOL]
    with (tmp_path / "web.log").open("wb") as log:
        process = subprocess.Popen(
            [*argv, "--port", str(port), "--no-access-log", "--no-proxy-headers"],
            env={**os.environ, "REDIS_URL": valkey.url},
            cwd=ROOT,
            stdout=log,
            stderr=log,
        )
    base = f"http://127.0.0.1:{port}"
    try:
        wait_until(lambda: _answers(base), what="the web process", timeout_s=120)
        yield base
    finally:
        process.terminate()
        process.wait(15)


def _answers(base: str) -> bool:
    try:
        return requests.get(f"{base}/readyz", timeout=2).status_code == 200
    except requests.RequestException:
        return False


def _states(base: str) -> dict[str, str]:
    answer = requests.get(f"{base}/readyz", timeout=60)
    assert answer.status_code == 200, answer.text
    return {name: d["state"] for name, d in answer.json()["dependencies"].items()}


def _waiting(account: TenantAccount) -> int:
    rows = OutboxTask.objects.using("relay")
    return rows.filter(tenant_id=account.tenant.id, handed_to="").count()


def test_without_valkey_the_api_continues_and_tasks_wait_in_the_outbox(
    valkey: OwnValkey, web: str
) -> None:
    account = make_tenant()
    caller, person = with_key(web, account.admin_key), signed_in(web, account.owner)
    assert caller.get("/v1/whoami").status_code == 200
    valkey.kill()

    _calls_stay_quick_and_limited(caller)
    invited = person.post(
        f"/api/v1/tenants/{account.slug}/invitations", {"email": "a@example.test", "role": "viewer"}
    )
    assert invited.status_code == 201, invited.text
    assert _waiting(account) == 1, "the mail's task waits for the broker"
    states = _states(web)
    assert states["database"] == "up"
    assert states["limits"] == states["broker"] == "down"

    valkey.start()
    wait_until(lambda: _states(web)["broker"] == "up", what="Valkey to be noticed")
    assert caller.get("/v1/whoami").status_code == 200


def _calls_stay_quick_and_limited(caller: Caller) -> None:
    begin = time.monotonic()
    answers = [caller.get("/v1/whoami") for _ in range(30)]
    assert {a.status_code for a in answers} == {200}
    assert time.monotonic() - begin < 10, "calls do not wait for an absent Valkey one by one"
    assert '"tenant";r=' in answers[-1].headers["RateLimit"]
    assert json.loads(answers[-1].text)["kind"] == "secret_key"
