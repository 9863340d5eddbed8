"""The console's page as Django serves it: which addresses it has, and what browsers let it do."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest
import requests

from rillbase_server.console import is_immutable
from tests.caller import anonymous, problem, signed_in
from tests.make import make_tenant

DIST = Path(__file__).resolve().parents[2] / "console" / "dist"
FIRST_LOAD_MAX_BYTES = 200_000

ADDRESSES = ["/", "/sign-up", "/sign-in", "/account", "/t/demo", "/t/demo/collections/todos/rules"]


@pytest.mark.parametrize("address", ADDRESSES)
def test_every_path_of_the_console_returns_the_one_page(server: str, address: str) -> None:
    answer = requests.get(server + address, timeout=30)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/html")
    assert '<div id="root"></div>' in answer.text
    assert answer.headers["Cache-Control"] == "no-cache"


def test_other_paths_do_not_return_the_page(server: str) -> None:
    for address in ("/nowhere", "/t", "/t/Demo", "/sign-in/x"):
        assert requests.get(server + address, timeout=30).status_code == 404


def test_the_page_may_load_from_its_own_server_only_and_be_framed_by_nobody(server: str) -> None:
    answer = requests.get(server + "/t/demo", timeout=30)
    policy = answer.headers["Content-Security-Policy"]
    directives = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert directives["default-src"] == "'self'"
    assert directives["frame-ancestors"] == "'none'"
    assert directives["object-src"] == "'none'"
    assert directives["base-uri"] == "'none'"
    assert "unsafe" not in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_the_page_has_no_inline_script_and_names_nothing_elsewhere(server: str) -> None:
    page = requests.get(server + "/", timeout=30).text
    scripts = re.findall(r"<script\b([^>]*)>(.*?)</script>", page, re.DOTALL)
    assert scripts
    assert all("src=" in attributes and not body.strip() for attributes, body in scripts)
    assert re.findall(r'(?:src|href)="(?!/)', page) == []
    assert "style=" not in page


def test_scripts_are_cached_forever_and_sent_compressed(server: str) -> None:
    scripts = [name for name in first_load() if name.endswith(".js")]
    # Tiny files are sent as they are.
    script = max(scripts, key=lambda name: (DIST / name).stat().st_size)
    answer = requests.get(
        f"{server}/static/console/{script}", headers={"Accept-Encoding": "gzip"}, timeout=30
    )
    assert answer.headers["Content-Encoding"] == "gzip"
    assert "immutable" in answer.headers["Cache-Control"]
    assert not is_immutable("", "/static/console/index.html")


def test_the_first_load_is_small() -> None:
    assert sum(len(gzip.compress((DIST / name).read_bytes())) for name in first_load()) <= (
        FIRST_LOAD_MAX_BYTES
    )


def first_load() -> set[str]:
    """Return the files that the page loads before anything is opened."""
    manifest = json.loads((DIST / "manifest.json").read_text())
    files: set[str] = set()
    waiting = ["index.html"]
    while waiting:
        part = manifest[waiting.pop()]
        if part["file"] not in files:
            files |= {part["file"], *part.get("css", ())}
            waiting += part.get("imports", ())
    return files


def test_the_sdk_may_be_loaded_by_pages_of_other_origins(server: str) -> None:
    answer = requests.get(f"{server}/static/sdk/index.js", timeout=30)
    assert answer.status_code == 200
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert "javascript" in answer.headers["Content-Type"]


def test_a_page_of_another_origin_cannot_use_the_session(server: str) -> None:
    account = make_tenant()
    caller = signed_in(server, account.owner)
    path = f"/api/v1/tenants/{account.slug}"
    evil = {"Origin": "https://evil.example"}
    problem(caller.patch(path, {"name": "Taken"}, **evil), 403, "csrf_failed")
    caller.headers.pop("X-CSRF-Token")
    problem(caller.patch(path, {"name": "Taken"}), 403, "csrf_failed")


def test_members_see_the_grid_and_strangers_do_not(server: str) -> None:
    account = make_tenant()
    path = f"/api/v1/tenants/{account.slug}/cluster"
    problem(anonymous(server).get(path), 401, "unauthenticated")
    answer = signed_in(server, account.owner).get(path)
    assert answer.status_code == 200, answer.text
    for grid in answer.json()["grids"]:
        kinds = [node["kind"] for node in grid["nodes"]]
        assert kinds.count("filter") == grid["query_partitions"] * grid["write_partitions"]
        assert kinds.count("sort") == grid["query_partitions"]
