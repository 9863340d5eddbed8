"""Relays and the event layer are killed while documents are written: every write is published.

The long variant kills the servers of a whole installation, under writes over HTTP.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import pytest
import requests

from rillbase_native import Value, id_key
from rillbase_server.launcher.ports import free_port
from tests.documents.outbox.listener import Listener
from tests.documents.outbox.sql_writer import SqlWriter, key_bytes
from tests.launcher_process import LauncherDirectory
from tests.own_valkey import OwnValkey
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
KILL_S = int(os.environ.get("RILLBASE_OUTBOX_S", "120"))
DOCUMENTS = 40


class RelayProcess:
    """`manage.py relay`, which can be killed and restarted."""

    def __init__(self, valkey: OwnValkey, log: Path) -> None:
        self._environment = {**os.environ, "EVENTS_URL": valkey.url}
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._port = free_port()
        argv = [sys.executable, "manage.py", "relay", "--port", str(self._port)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                argv, env=self._environment, cwd=ROOT, stdout=log, stderr=log
            )

    def leads(self) -> bool:
        try:
            return bool(
                requests.get(f"http://127.0.0.1:{self._port}/status", timeout=2).json()["leading"]
            )
        except requests.RequestException:
            return False

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@pytest.fixture
def relays(valkey: OwnValkey, tmp_path: Path) -> Iterator[list[RelayProcess]]:
    """Two relays, of which one leads."""
    running = [RelayProcess(valkey, tmp_path / f"relay{number}.log") for number in (1, 2)]
    for relay in running:
        relay.start()
    yield running
    for relay in running:
        relay.kill()


@pytest.mark.timeout(400)
def test_everything_is_published_although_the_leader_and_valkey_are_killed(
    relays: list[RelayProcess], valkey: OwnValkey, postgres_url: str
) -> None:
    writer, listener = SqlWriter(postgres_url), Listener(valkey.client)
    versions: dict[int, int] = {}
    over = threading.Event()

    def write() -> None:
        for number in itertools.count():
            if over.is_set():
                return
            versions.update(zip([key := number % DOCUMENTS], writer.write(key), strict=True))

    with listener.following():
        thread = threading.Thread(target=write)
        thread.start()
        try:
            _kill_leader(relays)
            valkey.kill()
            valkey.start()
            before = _counts(listener)
            wait_until(lambda: _counts(listener) != before, what="ticks", timeout_s=60)
            with valkey.client() as client:
                client.flushall()
            _kill_leader(relays)
        finally:
            over.set()
            thread.join()
        wait_until(
            lambda: all(
                listener.has(writer.collection, key_bytes(key), version)
                for key, version in versions.items()
            ),
            what="the newest version of each document",
            timeout_s=60,
        )
    assert sum(versions.values()) > DOCUMENTS


def test_a_relay_that_wakes_up_late_publishes_nothing(
    relays: list[RelayProcess], valkey: OwnValkey, postgres_url: str
) -> None:
    writer, listener = SqlWriter(postgres_url), Listener(valkey.client)

    def written(*keys: int) -> None:
        writer.write(*keys)
        wait_until(
            lambda: all(listener.has(writer.collection, key_bytes(key), 1) for key in keys),
            what="the documents",
            timeout_s=60,
        )

    with listener.following():
        slept = _leader(relays)
        written(1, 2)
        slept.signal(signal.SIGSTOP)
        try:
            # Anything that it has read and not sent yet would be sent late.
            written(3, 4)
            successor = _leader([relay for relay in relays if relay is not slept])
        finally:
            slept.signal(signal.SIGCONT)
        wait_until(lambda: not slept.leads(), what="the first one to see it", timeout_s=60)
        written(5, 6)
        successor.kill()
        _leader([slept])
        written(7, 8)
    for tokens in listener.tokens.values():
        assert tokens == sorted(tokens)


def _leader(relays: list[RelayProcess]) -> RelayProcess:
    """Return the relay that leads, once there is one."""
    leader = relays[0]

    def has_leader() -> bool:
        nonlocal leader
        # A relay that was suspended may believe for a moment that it still leads.
        leading = [relay for relay in relays if relay.leads()]
        leader = leading[0] if leading else leader
        return bool(leading)

    wait_until(has_leader, what="a leader", timeout_s=60)
    return leader


def _kill_leader(relays: list[RelayProcess]) -> None:
    leader = _leader(relays)
    leader.kill()
    leader.start()
    others = [relay for relay in relays if relay is not leader]
    wait_until(
        lambda: any(o.leads() for o in others) or leader.leads(), what="a new leader", timeout_s=60
    )


def _counts(listener: Listener) -> dict[str, tuple[bytes, int]]:
    """Return the counts of the last ticks, which all differ."""
    return {name: (t.incarnation, t.count) for name, t in list(listener.ticks.items())}


@dataclass
class HttpWriters:
    """Writers over HTTP that remember acknowledged writes."""

    url: str
    headers: dict[str, str]
    #: The newest acknowledged version of each document.
    versions: dict[str, int] = field(default_factory=dict)
    acknowledged: int = 0
    over: threading.Event = field(default_factory=threading.Event)

    def await_more(self, writes: int) -> None:
        goal = self.acknowledged + writes
        wait_until(lambda: self.acknowledged >= goal, what="writes to go on", timeout_s=90)

    def write(self, number: int) -> None:
        for count in itertools.count():
            if self.over.is_set():
                return
            document = f"{number}-{count % DOCUMENTS}"
            try:
                answer = requests.put(
                    f"{self.url}/documents/{document}",
                    json={"_id": document, "count": count},
                    headers=self.headers,
                    timeout=60,
                )
            except requests.RequestException:
                self.over.wait(0.05)
                continue
            if answer.ok:
                self.acknowledged += 1
                self.versions[document] = int(answer.json()["version"])
            else:
                self.over.wait(0.05)


@pytest.mark.long
@pytest.mark.timeout(KILL_S + 600)
def test_acknowledged_writes_are_stored_and_published_whichever_process_is_killed(
    launcher_directory: LauncherDirectory,
) -> None:
    rng = random.Random(7)
    with launcher_directory.up() as launched:
        ready = launched.ready
        headers = {"Authorization": f"Bearer {ready['api_key']}"}
        collections = f"{ready['url']}/api/v1/tenants/{ready['tenant']}/collections"
        created = requests.post(collections, json={"name": "chaos"}, headers=headers, timeout=60)
        assert created.status_code == 201, created.text
        collection = UUID(created.json()["id"])
        writers = HttpWriters(f"{ready['url']}/v1/collections/chaos", headers)
        listener = Listener(launcher_directory.valkey)
        with listener.following():
            kills = _kill_for(launcher_directory, writers, rng)
            wait_until(
                lambda: all(
                    listener.has(collection, id_key(Value.parse(f'"{name}"'.encode())), version)
                    for name, version in writers.versions.items()
                ),
                what="the newest acknowledged version of each document",
                timeout_s=60,
            )
        _check_stored(writers)
    assert kills >= 3


def _kill_for(
    launcher_directory: LauncherDirectory, writers: HttpWriters, rng: random.Random
) -> int:
    """Kill one process after another under load; return the number of kills."""
    threads = [threading.Thread(target=writers.write, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    kills, end = 0, time.monotonic() + KILL_S
    try:
        while time.monotonic() < end:
            victim = rng.choice(["web", "postgres", "valkey", "background"])
            pid = launcher_directory.services()[victim]["pid"]
            if pid is not None:
                os.kill(pid, 9)
                kills += 1
            writers.await_more(20)
    finally:
        writers.over.set()
        for thread in threads:
            thread.join()
    return kills


def _check_stored(writers: HttpWriters) -> None:
    """Check that each document exists, in its acknowledged version or in one whose response was
    lost.
    """
    for name, version in writers.versions.items():
        answer = requests.get(
            f"{writers.url}/documents/{name}", headers=writers.headers, timeout=60
        )
        assert answer.status_code == 200, answer.text
        assert int(answer.json()["version"]) >= version
