"""A rehearsed backup: taken under writes, restored into an empty directory, and put into service.

The commands are those of docs/operations/backup.md.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
import requests

from rillbase import Client, TableQuery
from tenants.roles import ALL_SCOPES
from tests.launcher_command import argv, environment
from tests.launcher_process import LauncherDirectory, RunningLauncher, sign_in
from tests.realtime.client import greeted
from tests.realtime.live.answer import Answer, begin
from tests.waiting import wait_until

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
TIMEOUT_S = 300.0
POSTS = {"posts": {"columns": {"id": "int64", "text": "string"}, "key": ["id"]}}
PAGE = 500


class Installation:
    """A running installation, called with the demo tenant's key."""

    def __init__(self, launcher_directory: LauncherDirectory, ready: dict[str, str]) -> None:
        self.place, self.ready = launcher_directory, ready
        self.headers = {"Authorization": f"Bearer {self.ready['api_key']}"}

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = requests.post(
            self.ready["url"] + path, json=body, headers=self.headers, timeout=60
        )
        assert answer.ok, answer.text
        content: dict[str, Any] = answer.json()
        return content

    def insert(self, document: dict[str, Any], collection: str = "notes") -> None:
        self.post(f"/v1/collections/{collection}/documents", document)

    def get(self, path: str) -> dict[str, Any]:
        answer = requests.get(self.ready["url"] + path, headers=self.headers, timeout=60)
        assert answer.ok, answer.text
        body: dict[str, Any] = answer.json()
        return body

    def definitions(self) -> dict[str, Any]:
        """What the tenant has defined."""
        kinds = ("collections", "topics", "aggregates", "datasets", "webhooks", "api-keys")
        return {
            kind: sorted(item["id"] for item in self.get(f"{self.control}/{kind}")["items"])
            for kind in kinds
        }

    def publish(self, number: int) -> None:
        publication = {"id": f"1.{number}", "data": {"n": number}}
        self.post("/v1/topics/traffic/publications", publication)

    def notes(self) -> list[dict[str, Any]]:
        body = {"sort": [["_id", 1]]}
        result: list[dict[str, Any]] = self.post("/v1/collections/notes/query", body)["items"]
        return result

    def published(self) -> list[int]:
        """The numbers of all publications, in their order."""
        subscription = {"id": "1", "from": "-1h"}
        result = self.post("/v1/topics/traffic/subscriptions", subscription)
        return sorted(item["data"]["n"] for item in result["publications"])

    def logged(self) -> list[int]:
        """The ids of all documents of the collection `log`, in their order."""
        numbers, cursor = list[int](), None
        while True:
            body = {"sort": [["_id", 1]], "limit": PAGE}
            page = self.post(
                "/v1/collections/log/query", body | ({"cursor": cursor} if cursor else {})
            )
            numbers += [item["id"] for item in page["items"]]
            cursor = page["next_cursor"]
            if cursor is None:
                return numbers

    @contextmanager
    def written_to(self) -> Iterator[list[int]]:
        """Insert and publish numbers one after another; yield those that were acknowledged."""
        acknowledged, is_over = list[int](), Event()

        def write() -> None:
            number = 0
            while not is_over.is_set():
                number += 1
                self.insert({"_id": number}, "log")
                self.publish(number)
                acknowledged.append(number)

        writer = Thread(target=write)
        writer.start()
        try:
            yield acknowledged
        finally:
            is_over.set()
            writer.join()

    @property
    def client(self) -> Client:
        return Client(self.ready["url"], key=self.ready["api_key"])

    @property
    def control(self) -> str:
        return f"/api/v1/tenants/{self.ready['tenant']}"


class Backups:
    """The commands of backups, with one repository and its key."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "backups"
        self._key = folder / "backup.key"

    def argv(self, command: str, *options: object) -> list[str]:
        where = (self.folder, "--key-file", self._key)
        return argv("backup", command, *where, *options)

    def run(self, command: str, *options: object) -> str:
        done = subprocess.run(
            self.argv(command, *options),
            env=environment(),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    @contextmanager
    def archiving(self, launcher_directory: LauncherDirectory) -> Iterator[None]:
        """Archive continuously."""
        options = ("--data-dir", launcher_directory.data, "--interval", 0.5)
        with subprocess.Popen(self.argv("archive", *options), env=environment()) as process:
            try:
                yield
            finally:
                process.terminate()

    def await_archived(self) -> None:
        """Wait until what has been written by now is in the archive."""
        present = set((self.folder / "wal").glob("*"))
        # The first may have been closed before.
        wait_until(
            lambda: len(set((self.folder / "wal").glob("0*")) - present) >= 2,
            what="the archive",
            timeout_s=TIMEOUT_S,
        )


def add_tenant(here: Installation, slug: str) -> dict[str, str]:
    """Create another tenant; return what `Installation.ready` holds of it."""
    token = {"Authorization": f"Bearer {sign_in(here.ready)}"}
    tenants = f"{here.ready['url']}/api/v1/tenants"

    def create(url: str, body: dict[str, Any]) -> dict[str, Any]:
        created_object = requests.post(url, json=body, headers=token, timeout=60)
        assert created_object.ok, created_object.text
        created: dict[str, Any] = created_object.json()
        return created

    create(tenants, {"slug": slug, "name": slug})
    key = create(f"{tenants}/{slug}/api-keys", {"name": "all", "scopes": list(ALL_SCOPES)})
    return here.ready | {"tenant": slug, "api_key": key["secret"]}


def define(here: Installation) -> None:
    """Define a collection, a topic, and a dataset with a row."""
    for name in ("notes", "log"):
        here.post(f"{here.control}/collections", {"name": name})
    here.post(f"{here.control}/topics", {"name": "traffic"})
    here.post(f"{here.control}/datasets", {"name": "posts", "tables": POSTS})
    here.insert({"_id": "kept"})
    with here.client as client:
        client.dataset("posts").upload([{"id": 1, "text": "kept"}], table="posts")


def check_dataset(here: Installation) -> None:
    with here.client as client:
        rows = client.dataset("posts").query(TableQuery(table="posts", freshness=0)).rows
        assert rows == [{"id": 1, "text": "kept"}]


@dataclass(frozen=True)
class KnownState:
    """What was known when the machine was lost."""

    here: Installation
    there: Installation
    defined: list[dict[str, Any]]
    #: The numbers acknowledged before the backup, and in all.
    before: list[int]
    acknowledged: list[int]
    later: datetime
    answer: Answer

    def restored(self, launched: RunningLauncher) -> tuple[Installation, Installation]:
        """Return both tenants in the restored installation."""
        url = {"url": launched.ready["url"]}
        launcher_directory = self.here.place
        return (
            Installation(launcher_directory, self.here.ready | url),
            Installation(launcher_directory, self.there.ready | url),
        )


def check_backup(state: KnownState, launched: RunningLauncher) -> None:
    here, there = state.restored(launched)
    assert [installation.definitions() for installation in (here, there)] == state.defined
    documents, publications = here.logged(), here.published()
    # All that was acknowledged before, and of what was written meanwhile a part without gaps.
    for numbers in (documents, publications):
        assert numbers == list(range(1, len(numbers) + 1))
        assert len(state.before) <= len(numbers) <= len(state.acknowledged)
    # Each number was published once its document was stored.
    assert len(documents) - len(publications) in {0, 1}
    for installation in (here, there):
        check_dataset(installation)
    assert [item["id"] for item in there.notes()] == ["kept"]
    check_subscription(here, state.answer)


def check_subscription(here: Installation, answer: Answer) -> None:
    """A client that resumes starts over, and receives every further change."""
    with greeted(here.ready["url"], here.ready["api_key"]) as client:
        back = Answer(client=client, name="s", items=answer.items, seq=answer.seq)
        client.send(type="subscribe", id="s", collection="notes", resume=answer.resume)
        assert back.next(TIMEOUT_S)["type"] == "reset"
        back.until("ready", timeout_s=TIMEOUT_S)
        assert back.documents == [{"_id": "kept"}]
        here.insert({"_id": "new"})
        back.until_shows([{"_id": "kept"}, {"_id": "new"}], timeout_s=TIMEOUT_S)


def check_later(state: KnownState, launched: RunningLauncher) -> None:
    here, _ = state.restored(launched)
    assert [item["id"] for item in here.notes()] == ["kept", "later"]
    assert here.logged() == state.acknowledged
    check_dataset(here)


def live_through_a_backup(launcher_directory: LauncherDirectory, backups: Backups) -> KnownState:
    """Back up two tenants while they are written to, and write more afterwards."""
    with launcher_directory.up(RILLBASE_GRID="processes") as launched:
        here = Installation(launcher_directory, launched.ready)
        define(here)
        there = Installation(launcher_directory, add_tenant(here, "other"))
        define(there)
        defined = [installation.definitions() for installation in (here, there)]
        with (
            backups.archiving(launcher_directory),
            greeted(here.ready["url"], here.ready["api_key"]) as client,
        ):
            answer = begin(client, "s", collection="notes")
            answer.until("ready", timeout_s=TIMEOUT_S)
            with here.written_to() as acknowledged:
                wait_until(lambda: len(acknowledged) > 20, what="some writes")
                before = list(acknowledged)
                backups.run("create", "--data-dir", launcher_directory.data)
            here.insert({"_id": "later"})
            later = datetime.now(UTC)
            here.insert({"_id": "lost"})
            answer.until_shows(
                [{"_id": "kept"}, {"_id": "later"}, {"_id": "lost"}], timeout_s=TIMEOUT_S
            )
            backups.await_archived()
    assert len(acknowledged) > len(before)
    return KnownState(here, there, defined, before, acknowledged, later, answer)


def test_a_restored_installation_is_consistent_and_clients_start_over(
    launcher_directory: LauncherDirectory, tmp_path: Path
) -> None:
    backups = Backups(tmp_path)
    state = live_through_a_backup(launcher_directory, backups)
    assert "is intact" in backups.run("verify")
    for options, check in (
        ((), check_backup),
        (("--to", state.later.isoformat()), check_later),
    ):
        shutil.rmtree(launcher_directory.data)
        backups.run("restore", "--data-dir", launcher_directory.data, *options)
        with launcher_directory.up(RILLBASE_GRID="processes") as launched:
            check(state, launched)
