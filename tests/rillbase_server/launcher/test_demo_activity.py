"""The clients that keep the demo tenant busy use every feature that the console shows."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import requests

from examples.demo import tenant
from rillbase_server.launcher.data_directory import DataDirectory
from rillbase_server.launcher.demo_login import write_key
from tests.caller import with_key
from tests.make import TenantAccount, make_tenant
from tests.sdk.proxy import through_proxy
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[3]


def demo(server: str, key: str, file: Path) -> list[str]:
    """Return the command that plays the demo's clients with a key."""
    file.write_text(key)
    files = ("--key-file", str(file), "--ready-file", str(file.with_suffix(".ready")))
    return [sys.executable, "-m", "examples.demo", "--url", server, *files]


def run_demo(server: str, key: str, file: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*demo(server, key, file), "--seconds", "3"],
        cwd=ROOT,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


def test_every_feature_has_data_after_each_start(server: str, tmp_path: Path) -> None:
    account = make_tenant(plan="dedicated")
    for _ in range(2):
        run = run_demo(server, account.admin_key, tmp_path / "demo.key")
        assert (run.returncode, run.stderr) == (0, "")
        assert (tmp_path / "demo.ready").exists()
        assert sizes(server, account) == {
            "deliveries": 8,
            "vans": True,
            "sales": True,
            "webhooks": 1,
            "pinned": ["line", "bar"],
            "sources": ["stock"],
        }
    errors = with_key(server, account.admin_key).get(f"/api/v1/tenants/{account.slug}/errors")
    assert [item["code"] for item in errors.json()["items"]] == []


def sizes(server: str, account: TenantAccount) -> dict[str, object]:
    caller = with_key(server, account.admin_key)
    query = caller.post("/v1/collections/deliveries/query", {"filter": {}}).json()
    box = quote('{"box": [16, 48, 17, 49]}')
    vans = caller.get(f"/v1/topics/vans/publications?geo={box}")
    rows = caller.post("/v1/aggregates/sales/query", {"group_by": ["goods"], "from": "-24h"}).json()
    webhooks = caller.get(f"/api/v1/tenants/{account.slug}/webhooks").json()["items"]
    saved = caller.get(f"/api/v1/tenants/{account.slug}/saved-queries?pinned=true").json()["items"]
    sources = caller.get(f"/api/v1/tenants/{account.slug}/sources").json()["items"]
    return {
        "deliveries": len(query["items"]),
        "vans": len(vans.json()["items"]) >= 8,
        "sales": sum(row["deliveries"] for row in rows["rows"]) >= 1_000,
        "webhooks": len(webhooks),
        "pinned": [one["chart"]["type"] for one in sorted(saved, key=lambda one: int(one["pin"]))],
        "sources": [source["table"] for source in sources],
    }


def test_the_clients_use_one_key_for_data_alone(server: str, tmp_path: Path) -> None:
    account, file = make_tenant(plan="dedicated"), tmp_path / "demo.key"
    for _ in range(2):
        assert run_demo(server, account.admin_key, file).returncode == 0
    stored = file.with_suffix(".data-key")
    assert stat.S_IMODE(stored.stat().st_mode) == 0o600
    path = f"/api/v1/tenants/{account.slug}/api-keys"
    keys = with_key(server, account.admin_key).get(path).json()["items"]
    (key,) = (key for key in keys if key["name"] == tenant.KEY)
    assert f"_{key['key_id']}_" in stored.read_text()
    assert "admin" not in key["scopes"]


def test_the_receiver_responds_only_at_its_own_address() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), tenant.Receiver) as receiver:
        threading.Thread(target=receiver.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{receiver.server_port}"
        event = {"data": {"challenge": 1}}
        assert requests.post(url, json=event, timeout=10).status_code == 404
        assert requests.get(url + tenant.Receiver.ADDRESS, timeout=10).status_code == 404
        answer = requests.post(url + tenant.Receiver.ADDRESS, json=event, timeout=10)
        assert (answer.status_code, answer.json()) == (200, {"challenge": 1})
        receiver.shutdown()


def test_the_clients_go_on_after_a_restart_of_the_server(server: str, tmp_path: Path) -> None:
    account, file = make_tenant(plan="dedicated"), tmp_path / "demo.key"
    ready, log = file.with_suffix(".ready"), tmp_path / "log"
    with through_proxy(server) as proxy, log.open("w") as output:
        command = demo(proxy.url, account.admin_key, file)
        process = subprocess.Popen(command, cwd=ROOT, stderr=output)
        try:
            wait_until(ready.exists, what="the clients")
            ready.unlink()
            proxy.refuses = True
            proxy.cut()
            wait_until(lambda: "Rillbase at" in log.read_text(), what="the report")
            proxy.refuses = False
            wait_until(ready.exists, what="the clients once more")
        finally:
            process.terminate()
        assert process.wait(30) == 0


def test_a_wrong_key_is_reported_in_a_line(server: str, tmp_path: Path) -> None:
    run = run_demo(server, "rbk_dev_wrong", tmp_path / "demo.key")
    assert run.returncode == 1
    assert len(run.stderr.splitlines()) == 1


def test_the_key_is_the_one_that_was_just_prepared_or_else_the_stored_one(tmp_path: Path) -> None:
    directory, file = DataDirectory(tmp_path), tmp_path / "demo.key"
    directory.secrets.write_text('{"demo": {"api_key": "stored"}}')
    directory.demo.parent.mkdir(parents=True, exist_ok=True)
    directory.demo.write_text('{"api_key": "prepared"}')
    write_key(directory, file)
    assert file.read_text() == "prepared"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    directory.demo.unlink()
    write_key(directory, file)
    assert file.read_text() == "stored"


def test_damaged_secrets_keep_the_key_that_was_there(tmp_path: Path) -> None:
    directory, file = DataDirectory(tmp_path), tmp_path / "demo.key"
    file.write_text("earlier")
    directory.secrets.write_text("{")
    write_key(directory, file)
    assert file.read_text() == "earlier"
