"""The images run as the compose file says: they get healthy, push results, and stop when asked."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from rillbase import Client
from tests.images.conftest import GetImage
from tests.images.installation import OURS, Installation, started

pytestmark = [pytest.mark.images, pytest.mark.timeout(1800)]
URL = "http://127.0.0.1:8080"
LASTING = [name for name in OURS if name != "migrations"]


@pytest.fixture(scope="module")
def installation(image: GetImage, machine: Path) -> Iterator[Installation]:
    with started(image, machine / "installation") as running:
        yield running


@pytest.fixture(scope="module")
def key(installation: Installation) -> str:
    """The key of the demo tenant, which an operator creates as the documentation says."""
    done = installation.run(
        "migrations",
        "sh",
        "-c",
        "python manage.py prepare_database --demo-json /tmp/demo.json >&2 && cat /tmp/demo.json",
    )
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["api_key"])


def test_a_live_query_follows_a_write(installation: Installation, key: str) -> None:
    with Client(URL, key=key) as client:
        todos = client.collection("todos")
        results = []
        for snapshot in todos.where("owner", "==", "a container").watch():
            results.append([document["title"] for document in snapshot.documents])
            if snapshot.state == "live" and not snapshot.documents:
                todos.insert(
                    {"title": "Push this", "owner": "a container", "done": False, "rank": 0}
                )
            if snapshot.documents:
                break
        assert results[-1] == ["Push this"]


def test_the_console_and_the_documentation_are_in_the_image(installation: Installation) -> None:
    fetch = (
        "import sys, urllib.request as r; print(r.urlopen(sys.argv[1], timeout=30).read()[:200])"
    )
    for path in ("/", "/docs/"):
        done = installation.run("app", "python", "-c", fetch, URL + path)
        assert "<!doctype html" in done.stdout.lower(), done.stderr


@pytest.mark.parametrize("name", LASTING)
def test_a_service_stops_when_asked_and_is_healthy_again_afterwards(
    installation: Installation, name: str
) -> None:
    container = installation.containers[name]
    number = signal.Signals[installation.services[name].get("stop_signal", "SIGTERM")]
    assert container.stop(number) == 0, container.output[-4000:]
    installation.start(name)
    installation.await_health(name)


def test_what_was_stored_is_there_after_a_kill(installation: Installation, key: str) -> None:
    headers = {"Authorization": f"Bearer {key}"}
    created = requests.post(
        f"{URL}/api/v1/tenants/demo/topics",
        json={"name": "kept", "kind": "flat"},
        headers=headers,
        timeout=60,
    )
    assert created.status_code == 201, created.text
    publications = f"{URL}/v1/topics/kept/publications"
    published = requests.post(
        publications, json={"id": "news", "data": {"n": 1}}, headers=headers, timeout=60
    )
    assert published.status_code == 201, published.text

    container = installation.containers["storage-node"]
    assert container.stop(signal.SIGKILL) != 0
    installation.start("storage-node")
    installation.await_health("storage-node")
    listed = requests.get(publications, params={"id": "news"}, headers=headers, timeout=60)
    assert listed.status_code == 200, listed.text
    assert [each["data"] for each in listed.json()["items"]] == [{"n": 1}], listed.text
