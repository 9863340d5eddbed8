"""The programs of the README work in a new installation, with its publishable key."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import requests

from rillbase_server.demo import DEV_SERVER_ORIGINS
from tests.documentation.fences import ROOT, fences
from tests.waiting import wait_until

SHOWN_WITHIN_S = 60.0
pytestmark = [pytest.mark.examples, pytest.mark.timeout(300)]


@pytest.mark.parametrize(
    ("language", "file", "command"),
    [("js", "app.mjs", ["node"]), ("python", "app.py", [sys.executable])],
)
def test_the_program_shows_changes_of_other_clients(
    language: str, file: str, command: list[str], ready: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / file).write_text(program(language, ready))
    modules = tmp_path / "node_modules"
    modules.mkdir()
    (modules / "rillbase").symlink_to(ROOT / "sdk" / "js")
    variables = os.environ | {"PYTHONPATH": str(ROOT / "sdk" / "python")}
    output = tmp_path / "output"
    with output.open("wb") as sink:
        running = subprocess.Popen(
            [*command, file], cwd=tmp_path, env=variables, stdout=sink, stderr=sink
        )
        try:
            shows(output, "Subscribe to a query")
            write(ready, title := f"Written for {language}")
            shows(output, title)
        finally:
            running.terminate()
            running.wait(timeout=30)
    if language == "js":
        assert "Write a live query" in output.read_text()


@pytest.mark.parametrize("origin", DEV_SERVER_ORIGINS)
def test_pages_of_development_servers_may_read(origin: str, ready: dict[str, str]) -> None:
    answer = requests.post(
        f"{ready['url']}/v1/collections/tasks/query",
        json={},
        headers={"Rillbase-Key": ready["publishable_key"], "Origin": origin},
        timeout=30,
    )
    assert answer.status_code == 200, answer.text
    assert answer.headers["Access-Control-Allow-Origin"] == origin


def program(language: str, ready: dict[str, str]) -> str:
    (source,) = (fence.text for fence in fences(ROOT / "README.md") if fence.language == language)
    return source.replace("http://127.0.0.1:8080", ready["url"]).replace(
        "rbp_dev_…", ready["publishable_key"]
    )


def write(ready: dict[str, str], title: str) -> None:
    answer = requests.post(
        f"{ready['url']}/v1/collections/tasks/documents",
        json={"title": title, "done": False, "created": {"$date": "2100-01-01T00:00:00Z"}},
        headers={"Authorization": f"Bearer {ready['api_key']}"},
        timeout=30,
    )
    assert answer.status_code == 201, answer.text


def shows(output: Path, text: str) -> None:
    wait_until(
        lambda: text in output.read_text(), what=f"{text} in the output", timeout_s=SHOWN_WITHIN_S
    )
