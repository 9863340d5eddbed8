"""A rehearsed backup: taken from a running installation, restored, and put into service.

The steps are those of docs/operations/kubernetes.md, with the launcher instead of Kubernetes.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
import requests

from rillbase_server.launcher.embedded import EmbeddedPostgres
from rillbase_server.launcher.postgres import binary
from tests.launched import Launched, Place
from tests.launcher_command import ROOT, environment, run
from tests.realtime.client import greeted
from tests.realtime.live.answer import Answer, begin

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
PATIENCE_S = 300.0


class Installation:
    """A running installation, called with the demo tenant's key."""

    def __init__(self, place: Place, launched: Launched) -> None:
        self.place, self.ready = place, launched.ready
        self.headers = {"Authorization": f"Bearer {self.ready['api_key']}"}

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = requests.post(
            self.ready["url"] + path, json=body, headers=self.headers, timeout=60
        )
        assert answer.ok, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def insert(self, document: dict[str, Any]) -> None:
        self.post("/v1/collections/notes/documents", document)

    @property
    def control(self) -> str:
        return f"/api/v1/tenants/{self.ready['tenant']}"


def secrets(place: Place) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((place.data / "secrets.json").read_text())
    return found


def settings(place: Place, postgres_port: int) -> dict[str, str]:
    """The settings of an operator's command, as the launcher passes them to its own commands."""
    kept = secrets(place)
    found = {
        "RILLBASE_SECRET_KEY": kept["secret_key"],
        "RILLBASE_KEY_PEPPER": kept["key_pepper"],
        "DATABASE_URL": f"postgresql://127.0.0.1:{postgres_port}/postgres",
    }
    services = place.services() if (place.data / "run" / "state.json").exists() else {}
    if services.get("node", {}).get("pid"):
        argv = psutil.Process(services["node"]["pid"]).cmdline()
        address = argv[argv.index("--listen") + 1]
        found["STORAGE_URL"] = f"redis://admin:{kept['storage_token']}@{address}"
    return environment(**found)


def program(name: str, place: Place, port: int, *arguments: str) -> None:
    """Run a PostgreSQL program as the administrator."""
    password = {"PGPASSWORD": secrets(place)["postgres_password"]}
    where = ["--host", "127.0.0.1", "--port", str(port), "--username", "postgres"]
    done = subprocess.run(
        [str(binary(name)), *where, "--dbname", "postgres", *arguments],
        env=os.environ | password,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def back_up(place: Place, folder: Path) -> None:
    """Back up the storage node first, then PostgreSQL."""
    port = int((place.data / "postgres" / "data" / "postmaster.pid").read_text().splitlines()[3])
    taken = run("checkpoint_storage", "rehearsal", env=settings(place, port))
    assert taken.returncode == 0, taken.stderr
    shutil.copytree(taken.stdout.strip(), folder / "node")
    program("pg_dump", place, port, "--format=custom", "--file", str(folder / "dump"))


def restore(place: Place, folder: Path) -> None:
    """Restore both while the installation is stopped, invalidate clients' tokens, and empty
    Valkey.
    """
    shutil.rmtree(place.data / "valkey")
    shutil.rmtree(place.data / "node" / "db")
    made = subprocess.run(
        [
            *(sys.executable, "-m", "storage_engine.tool", "restore"),
            *(str(folder / "node"), str(place.data / "node" / "db")),
        ],
        env=environment(),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    owner = (place.data / "node").stat()
    for path in [place.data / "node" / "db", *(place.data / "node" / "db").rglob("*")]:
        os.chown(path, owner.st_uid, owner.st_gid)
    password = secrets(place)["postgres_password"]
    postgres = EmbeddedPostgres(place.data / "postgres", superuser_password=password)
    with postgres:
        port = postgres.cluster.port
        program("pg_restore", place, port, "--clean", "--if-exists", str(folder / "dump"))
        raised = run("raise_installation_epoch", env=settings(place, port))
        assert raised.returncode == 0, raised.stderr


def test_a_restored_backup_serves_its_data_and_clients_start_over(
    place: Place, tmp_path: Path
) -> None:
    with place.up(RILLBASE_GRID="processes") as launched:
        here = Installation(place, launched)
        here.post(f"{here.control}/collections", {"name": "notes"})
        here.post(f"{here.control}/topics", {"name": "traffic"})
        here.insert({"_id": "kept"})
        here.post("/v1/topics/traffic/publications", {"id": "1.4", "data": {"kept": True}})
        with greeted(here.ready["url"], here.ready["api_key"]) as client:
            answer = begin(client, "s", collection="notes")
            answer.until("ready", timeout_s=PATIENCE_S)
            back_up(place, tmp_path)
            here.insert({"_id": "lost"})
            answer.until_shows([{"_id": "kept"}, {"_id": "lost"}], timeout_s=PATIENCE_S)
    restore(place, tmp_path)
    with place.up(RILLBASE_GRID="processes") as launched:
        here = Installation(place, launched)
        assert here.post("/v1/collections/notes/query", {})["items"][0]["id"] == "kept"
        with greeted(here.ready["url"], here.ready["api_key"]) as client:
            back = Answer(client=client, name="s", items=answer.items, seq=answer.seq)
            client.say(type="subscribe", id="s", collection="notes", resume=answer.resume)
            assert back.next(PATIENCE_S)["type"] == "reset"
            back.until("ready", timeout_s=PATIENCE_S)
            assert back.documents == [{"_id": "kept"}]
            here.insert({"_id": "new"})
            back.until_shows([{"_id": "kept"}, {"_id": "new"}], timeout_s=PATIENCE_S)
        found = here.post("/v1/topics/traffic/subscriptions", {"id": "1", "from": "-1h"})
        assert [each["data"] for each in found["publications"]] == [{"kept": True}]
