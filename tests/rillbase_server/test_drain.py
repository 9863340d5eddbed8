"""What clients see while a server ends."""

from __future__ import annotations

import signal

import pytest
import requests

from tests.make import make_key, make_tenant
from tests.own_server import another_server
from tests.realtime.client import greeted
from tests.waiting import wait_until

LONG_S = "600"


@pytest.fixture
def key() -> str:
    return make_key(make_tenant().tenant)


def readiness(url: str) -> tuple[int, str]:
    answer = requests.get(f"{url}/readyz", timeout=60)
    return answer.status_code, answer.json()["status"]


def test_a_draining_server_is_not_ready_and_continues_to_serve(key: str) -> None:
    with another_server(RILLBASE_DRAIN_S=LONG_S) as other, greeted(other.url, key) as client:
        wait_until(lambda: readiness(other.url)[0] == 200, what="the server to be ready")
        other.process.terminate()
        wait_until(lambda: readiness(other.url) == (503, "draining"), what="the server to drain")
        assert requests.get(f"{other.url}/healthz", timeout=60).ok
        client.send(type="ping", id="p")
        client.wait_for(lambda frame: frame["type"] == "pong")
        with greeted(other.url, key) as late:
            late.send(type="ping", id="p")
            late.wait_for(lambda frame: frame["type"] == "pong")
        other.process.send_signal(signal.SIGTERM)
        client.wait_for(lambda frame: frame["type"] == "goodbye")
        assert client.closed()[0] == 1012


def test_clients_are_notified_one_by_one_before_a_drained_server_ends(key: str) -> None:
    with another_server(RILLBASE_DRAIN_S="2") as other, greeted(other.url, key) as client:
        other.process.terminate()
        goodbye = client.wait_for(lambda frame: frame["type"] == "goodbye")
        assert 0 <= goodbye["reconnect_in_ms"] < 5_000
        assert client.closed()[0] == 1012
        assert other.process.wait(timeout=60) is not None
