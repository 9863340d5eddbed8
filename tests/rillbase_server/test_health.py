"""Responses to probes and scrapers, also while services are unavailable."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from foundation.asgi import Receive, Scope, Send
from foundation.environment import environment
from rillbase_server.health import HealthEndpoints
from rillbase_server.launcher.data_directory import DataDirectory
from rillbase_server.web_process import HTTP_PROTOCOL
from tests.asgi_driver import Answer, ask, http_scope
from tests.own_valkey import OwnValkey, free_port
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]


PRODUCTION = {
    "RILLBASE_ENV": "production",
    "RILLBASE_PUBLIC_URL": "https://localhost",
    "RILLBASE_ALLOW_LOOPBACK_TARGETS": "false",
}


@pytest.fixture
def own_valkey(tmp_path: Path) -> Iterator[OwnValkey]:
    server = OwnValkey(tmp_path)
    yield server
    server.close()


@pytest.fixture
def with_own_valkey(own_valkey: OwnValkey, settings_environment: pytest.MonkeyPatch) -> OwnValkey:
    settings_environment.setenv("REDIS_URL", own_valkey.url)
    return own_valkey


async def behind(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 299, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def get(path: str, **headers: str) -> Answer:
    return await ask(HealthEndpoints(behind, environment()), http_scope("GET", path, headers))


async def test_a_ready_server_reports_the_state_and_latency_of_each_dependency() -> None:
    answer = await get("/readyz")
    report = answer.json()
    assert (answer.status, report["status"]) == (200, "ready")
    names = ["database", "migrations", "limits", "broker", "events", "storage"]
    assert list(report["dependencies"]) == names
    for dependency in report["dependencies"].values():
        assert dependency["state"] == "up"
        assert dependency["latency_ms"] >= 0
    assert answer.header("cache-control") == "no-store"


async def test_without_valkey_the_server_is_ready_and_reports_what_is_missing(
    with_own_valkey: OwnValkey,
) -> None:
    assert (await get("/readyz")).json()["status"] == "ready"
    with_own_valkey.kill()
    answer = await get("/readyz")
    assert (answer.status, answer.json()["status"]) == (200, "degraded")
    assert answer.json()["dependencies"]["limits"]["state"] == "down"
    assert answer.json()["dependencies"]["limits"]["error"] == "ConnectionError"
    assert answer.json()["dependencies"]["database"]["state"] == "up"
    with_own_valkey.start()
    assert (await get("/readyz")).json()["status"] == "ready"


async def test_a_server_whose_writes_are_stopped_is_ready_and_reports_it(
    settings_environment: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    directory = DataDirectory(tmp_path)
    directory.create()
    settings_environment.setenv("RILLBASE_DATA_DIR", str(tmp_path))
    assert (await get("/readyz")).json()["dependencies"]["disk"]["state"] == "up"
    directory.write_stop.touch()
    answer = await get("/readyz")
    assert (answer.status, answer.json()["status"]) == (200, "degraded")
    disk = answer.json()["dependencies"]["disk"]
    assert (disk["state"], disk["error"]) == ("down", "WritesStopped")


async def test_a_frozen_valkey_does_not_block_the_probe(with_own_valkey: OwnValkey) -> None:
    with_own_valkey.freeze()
    answer = await get("/readyz")
    with_own_valkey.thaw()
    assert (answer.status, answer.json()["status"]) == (200, "degraded")


async def test_other_paths_go_to_the_application_behind() -> None:
    for path in ("/", "/healthz/", "/metrics2", "/api/v1/tenants"):
        assert (await get(path)).status == 299


async def test_metrics_show_waiting_tasks_and_the_database_pool(
    with_own_valkey: OwnValkey,
) -> None:
    with with_own_valkey.client() as client:
        client.lpush("default", "a", "b", "c")
    await get("/readyz")
    text = (await get("/metrics")).body.decode()
    assert 'rillbase_celery_queue_length{queue="default"} 3.0' in text
    assert 'rillbase_database_pool_connections{database="default",state="limit"} 8.0' in text
    assert 'rillbase_clusters{state="failing"}' in text
    with_own_valkey.kill()
    answer = await get("/metrics")
    assert answer.status == 200
    assert 'rillbase_celery_queue_length{queue="default"} NaN' in answer.body.decode()


async def test_metrics_require_the_token_if_one_is_set(
    settings_environment: pytest.MonkeyPatch,
) -> None:
    settings_environment.setenv("RILLBASE_METRICS_TOKEN", "let-me-in")
    for given in ("", "let-me-in", "Bearer let-me-out", "Bearer lét-me-in"):
        answer = await get("/metrics", Authorization=given)
        assert (answer.status, answer.json()["code"]) == (401, "unauthenticated")
        assert answer.header("www-authenticate") == "Bearer"
    assert (await get("/metrics", Authorization="Bearer let-me-in")).status == 200
    assert (await get("/healthz")).status == 200


async def test_production_without_a_token_has_no_metrics(
    settings_environment: pytest.MonkeyPatch,
) -> None:
    for name, value in PRODUCTION.items():
        settings_environment.setenv(name, value)
    answer = await get("/metrics")
    assert (answer.status, answer.json()["code"]) == (404, "not_found")
    assert "RILLBASE_METRICS_TOKEN" in answer.json()["detail"]
    assert b"rillbase_" not in answer.body
    settings_environment.setenv("RILLBASE_METRICS_TOKEN", "let-me-in")
    assert (await get("/metrics")).status == 401
    assert (await get("/metrics", Authorization="Bearer let-me-in")).status == 200


@contextmanager
def process(**variables: str) -> Iterator[str]:
    """Run the real server in a separate process; yields its base URL."""
    port = free_port()
    running = subprocess.Popen(
        [
            *(sys.executable, "-m", "uvicorn", "rillbase_server.asgi:application"),
            *("--port", str(port), "--no-proxy-headers", "--http", HTTP_PROTOCOL),
        ],
        cwd=ROOT,
        env={**os.environ, **variables},
        stderr=subprocess.DEVNULL,
    )

    def listens() -> bool:
        assert running.poll() is None, "the server ended"
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    try:
        wait_until(listens, what="the server to listen", timeout_s=120)
        yield f"http://127.0.0.1:{port}"
    finally:
        running.terminate()
        running.wait(20)


def fetch(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_without_its_database_the_server_is_alive_and_not_ready() -> None:
    away = f"postgresql://rb_app:x@127.0.0.1:{free_port()}/nowhere"
    with process(DATABASE_APP_URL=away) as base:
        assert fetch(base + "/healthz") == (200, '{"status": "alive"}')
        status, body = fetch(base + "/readyz")
        report = json.loads(body)
        assert (status, report["status"]) == (503, "unavailable")
        assert report["dependencies"]["database"]["state"] == "down"
        assert report["dependencies"]["limits"]["state"] == "up"
        assert fetch(base + "/metrics")[0] == 200


def test_with_a_database_that_lacks_migrations_the_server_is_not_ready(
    postgres_url: str,
) -> None:
    name = f"empty_{os.getpid()}"
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    empty = postgres_url.rpartition("/")[0] + "/" + name
    with process(DATABASE_URL=empty) as base:
        status, body = fetch(base + "/readyz")
        dependencies = json.loads(body)["dependencies"]
        assert status == 503
        assert dependencies["database"]["state"] == "up"
        assert dependencies["migrations"]["state"] == "down"
