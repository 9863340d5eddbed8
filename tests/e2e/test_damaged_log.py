"""A damaged log of the storage node: documents are served without it, and it can be repaired."""

from __future__ import annotations

from pathlib import Path

import pytest
import requests

from foundation.json_types import JsonObject
from storage_engine.tool import main
from tests.launcher_process import LauncherDirectory
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(600)
TIMEOUT_S = 120.0


def post(ready: dict[str, str], path: str, body: JsonObject) -> int:
    headers = {"Authorization": f"Bearer {ready['api_key']}"}
    return requests.post(ready["url"] + path, json=body, headers=headers, timeout=60).status_code


def publish(ready: dict[str, str], number: int) -> int:
    publication: JsonObject = {"id": "1", "data": {"number": number}}
    return post(ready, "/v1/topics/damaged/publications", publication)


def damage(segment: Path) -> None:
    content = bytearray(segment.read_bytes())
    content[content.index(b"number")] ^= 1
    segment.write_bytes(content)


def test_a_damaged_log_is_repaired_while_documents_are_served(
    launcher_directory: LauncherDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    database = launcher_directory.data / "node" / "db"
    settings = {"RILLBASE_GRID": "processes"}
    with launcher_directory.up(**settings) as running:
        tenant = f"/api/v1/tenants/{running.ready['tenant']}"
        for kind in ("collections", "topics"):
            assert post(running.ready, f"{tenant}/{kind}", {"name": "damaged"}) == 201
        assert [publish(running.ready, number) for number in range(20)] == [201] * 20

    damage(max((database / "log").glob("*.wal")))

    with launcher_directory.up(**settings) as running:
        documents = "/v1/collections/damaged/documents"
        assert publish(running.ready, 20) == 503
        assert post(running.ready, documents, {"state": "new"}) == 201
        assert launcher_directory.services()["node"]["state"] != "ready"

        assert main(["verify", str(database)]) == 1
        assert "wal" in capsys.readouterr().err
        assert main(["truncate-log", str(database)]) == 0
        assert "dropped" in capsys.readouterr().out

        def is_repaired() -> bool:
            return bool(launcher_directory.services()["node"]["state"] == "ready")

        wait_until(is_repaired, what="the node", timeout_s=TIMEOUT_S)
        assert publish(running.ready, 21) == 201
