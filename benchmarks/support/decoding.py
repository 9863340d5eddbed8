"""From a commit by SQL in a tenant's PostgreSQL to the event of a live query.

A second PostgreSQL, as durable as ours, a collection that follows one of its tables, and one client
that subscribes to all documents. Writers are a separate process: each transaction inserts or
updates a row that contains the time at which it was due. All clocks are those of one machine. For
writes that the event layer's streams still contain at the end, the duration of each stage is
reported.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

import psycopg
import requests

from benchmarks.support.client import opened, subscribe
from benchmarks.support.installation import Installation, installation, python, service, web
from benchmarks.support.stages import entered
from rillbase_server.launcher.embedded import EmbeddedPostgres

MAKE = """
import json
import django; django.setup()
from documents.models import Collection
from foundation.scope import scoped
from tests.make import make_tenant
account = make_tenant(plan="dedicated")
with scoped(tenant_id=account.tenant.id):
    Collection.objects.create(name="things")
print(json.dumps({"key": account.admin_key, "tenant": account.slug}))
"""
CREATE = "CREATE TABLE things (id int PRIMARY KEY, due double precision, name text, number int)"
#: The number of rows; each transaction updates one of them, or inserts it.
_ROWS = 10_000
_WRITE = (
    "INSERT INTO things VALUES (%s, %s, %s, %s) "
    "ON CONFLICT (id) DO UPDATE SET due = excluded.due, number = excluded.number"
)
WRITERS = 8
LIVE_S = 60.0
QUIET_S = 0.5
#: The stages between the recorded times of a write.
STAGES = ("commit", "to_stream", "to_log", "to_client")


@dataclass(slots=True)
class DecodingResults:
    """What the subscriber received."""

    commits: int = 0
    commits_per_s: float = 0.0
    delivered: int = 0
    disturbances: int = 0
    latencies_ms: list[float] = field(default_factory=list)
    #: The duration of each write in a stage, by the stage's name.
    stages_ms: dict[str, list[float]] = field(default_factory=dict)
    cpu_s: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WriterResults:
    """The writers' results."""

    commits: int
    seconds: float
    #: By row, its last write.
    last: dict[int, float]
    #: By the time at which it was due, when its commit was acknowledged.
    committed: dict[float, float]


def measure(writes_per_s: int, seconds: float) -> DecodingResults:
    """Start everything, write for a while, and receive the events."""
    with ExitStack() as opening:
        installed = opening.enter_context(installation())
        theirs = followed_database(opening, installed)
        prepared = json.loads(python(installed, MAKE))
        services = {
            name: opening.enter_context(service(installed, name, {"RILLBASE_GRID": "processes"}))
            for name in ("relay", "grid", "sources")
        }
        server = services["web"] = opening.enter_context(
            web(installed, "rillbase_server.asgi:application", {})
        )
        _follow(f"http://127.0.0.1:{server.port}", prepared, theirs.url)
        before = {name: service.cpu_s() for name, service in services.items()}
        receiver = _ReceivedEvents(
            DecodingResults(), theirs.url, installed.environment["REDIS_URL"]
        )
        decoded = asyncio.run(
            _listen(server.port, prepared["key"], receiver, (writes_per_s, seconds))
        )
        decoded.cpu_s = {name: service.cpu_s() - before[name] for name, service in services.items()}
    return decoded


def followed_database(opening: ExitStack, installed: Installation) -> EmbeddedPostgres:
    """Start the database whose table a source follows."""
    installed.environment["RILLBASE_ALLOW_LOOPBACK_TARGETS"] = "true"
    theirs = opening.enter_context(
        EmbeddedPostgres(
            installed.directory / "theirs",
            superuser_password="bench",
            settings={"wal_level": "logical"},
        )
    )
    with psycopg.connect(theirs.url, autocommit=True) as owner:
        owner.execute(CREATE)
    return theirs


def _follow(base: str, created: dict[str, str], url: str) -> None:
    """Make the collection follow the table."""
    path = f"{base}/api/v1/tenants/{created['tenant']}/collections/things/source"
    headers = {"Authorization": f"Bearer {created['key']}"}
    body = {"connection": f"{url}?sslmode=disable", "table": "things"}
    requests.post(path, json=body, headers=headers, timeout=30).raise_for_status()
    deadline = time.monotonic() + LIVE_S
    while requests.get(path, headers=headers, timeout=30).json()["state"] != "live":
        if time.monotonic() > deadline:
            raise RuntimeError("the source does not become live")
        time.sleep(0.1)


@dataclass(slots=True)
class _ReceivedEvents:
    """The events that the subscriber has received."""

    decoded: DecodingResults
    theirs_url: str
    valkey_url: str
    #: By row, its last received write; by write, when it was received.
    newest: dict[int, float] = field(default_factory=dict)
    at_s: dict[float, float] = field(default_factory=dict)

    def take(self, text: str | bytes, now_s: float) -> None:
        """Note a frame."""
        frame = json.loads(text)
        if frame["type"] == "event":
            due_s = frame["document"]["due"]
            self.newest[frame["key"]] = due_s
            self.at_s[due_s] = now_s
            self.decoded.latencies_ms.append((now_s - due_s) * 1000)
            self.decoded.delivered += 1
        elif frame["type"] in ("status", "reset", "end"):
            self.decoded.disturbances += 1

    def conclude(self, written: WriterResults) -> DecodingResults:
        """Compare with the writes, and return the duration of each stage."""
        streams, logs = entered(self.valkey_url, "due")
        decoded = self.decoded
        decoded.commits, decoded.commits_per_s = written.commits, written.commits / written.seconds
        # If a row was written twice before it was notified, only the last state is.
        if written.last != self.newest:
            decoded.disturbances += 1
        due = {moment: moment for moment in written.committed}
        passed = [due, written.committed, streams, logs, self.at_s]
        for name, before, behind in zip(STAGES, passed, passed[1:], strict=False):
            decoded.stages_ms[name] = [
                (behind[moment] - at_s) * 1000
                for moment, at_s in before.items()
                if moment in behind
            ]
        return decoded


async def _listen(
    port: int, key: str, receiver: _ReceivedEvents, rate: tuple[int, float]
) -> DecodingResults:
    """Subscribe to all rows, write them from another process, and record the latencies."""
    connection = await opened(port, key, queue=10_000)
    await connection.send(subscribe("all", "things", {"number": {"$gte": 0}}))
    while json.loads(await connection.recv())["type"] != "ready":
        pass
    context = multiprocessing.get_context("spawn")
    ours, others = context.Pipe()
    writer = context.Process(target=_write, args=(receiver.theirs_url, rate, others))
    writer.start()
    until = time.monotonic() + rate[1] + LIVE_S
    while time.monotonic() < until:
        try:
            text = await asyncio.wait_for(connection.recv(), QUIET_S)
        except TimeoutError:
            # All events have arrived, and the writer has reported.
            if ours.poll():
                break
        else:
            receiver.take(text, time.monotonic())
    decoded = receiver.conclude(ours.recv())
    writer.join()
    await connection.close()
    return decoded


def _write(url: str, rate: tuple[int, float], results: Connection) -> None:
    results.send(asyncio.run(_write_all(url, *rate)))


async def _write_all(url: str, writes_per_s: int, seconds: float) -> WriterResults:
    """Commit at a steady rate, whether or not the reader keeps up."""
    began, count = time.monotonic() + 0.2, int(writes_per_s * seconds)
    numbers = iter(range(count))
    last: dict[int, float] = {}
    committed: dict[float, float] = {}

    async def one() -> None:
        connection = await psycopg.AsyncConnection.connect(url, autocommit=True)
        async with connection:
            for number in numbers:
                due = began + number / writes_per_s
                if (early := due - time.monotonic()) > 0:
                    await asyncio.sleep(early)
                await connection.execute(
                    _WRITE, (number % _ROWS, due, f"n{number}", number), prepare=True
                )
                committed[due] = time.monotonic()
                last[number % _ROWS] = max(due, last.get(number % _ROWS, 0.0))

    await asyncio.gather(*(one() for _ in range(WRITERS)))
    return WriterResults(count, time.monotonic() - began, last, committed)
