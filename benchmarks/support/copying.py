"""The latency of the relay while a source copies a large table at full speed.

Writers insert documents into the database at a steady rate without publishing them. The latency is
the time from the commit until the relay has appended the document to its write stream: first
without other load, then while a table of another PostgreSQL is copied into a collection.
"""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Sequence
from contextlib import ExitStack

import psycopg
import requests

from benchmarks.support.decoding import MAKE, followed_database
from benchmarks.support.installation import Web, installation, python, service, web
from benchmarks.support.stages import entered
from tests.documents.outbox.sql_writer import SqlWriter

_FILL = "INSERT INTO things SELECT n, 0, 'name ' || n, n FROM generate_series(1, %s) AS n"
_ROWS = 700_000
_WRITES_PER_S = 40
#: Streams hold after-images for ten seconds.
_ROUND_S, _ROUNDS = 7.0, 2
_COPYING_S = 30.0


def measure(processes: Sequence[str]) -> tuple[list[float], list[float], float]:
    """Return the relay's latencies in ms without the copy and with it, and rows copied per second.

    `processes` run the relay and the sources.
    """
    with ExitStack() as opening:
        installed = opening.enter_context(installation())
        theirs = followed_database(opening, installed)
        with psycopg.connect(theirs.url, autocommit=True) as owner:
            owner.execute(_FILL, [_ROWS])
        prepared = json.loads(python(installed, MAKE))
        for name in processes:
            opening.enter_context(service(installed, name, {}))
        server = opening.enter_context(web(installed, "rillbase_server.asgi:application", {}))
        urls = installed.environment["DATABASE_URL"], installed.environment["REDIS_URL"]
        alone = _latencies_ms(*urls)
        source = _Source(server, prepared, theirs.url)
        begun_s, before = time.monotonic(), source.copied()
        beside = _latencies_ms(*urls)
        rate = (source.copied() - before) / (time.monotonic() - begun_s)
    return alone, beside, rate


class _Source:
    """A source that copies the table for the duration of the measurement."""

    def __init__(self, server: Web, created: dict[str, str], url: str) -> None:
        collection = f"tenants/{created['tenant']}/collections/things"
        self._path = f"http://127.0.0.1:{server.port}/api/v1/{collection}/source"
        self._headers = {"Authorization": f"Bearer {created['key']}"}
        body = {"connection": f"{url}?sslmode=disable", "table": "things"}
        requests.post(self._path, json=body, headers=self._headers, timeout=30).raise_for_status()
        deadline = time.monotonic() + _COPYING_S
        while self._shown()["state"] != "copying":
            if time.monotonic() > deadline:
                raise RuntimeError("the source does not copy")
            time.sleep(0.1)

    def copied(self) -> int:
        """Return the number of copied rows; raise if all have been copied."""
        shown = self._shown()
        if shown["state"] != "copying":
            raise RuntimeError(f"the copy ended early: {shown['state']}")
        return int(str(shown["rows_copied"]))

    def _shown(self) -> dict[str, object]:
        shown: dict[str, object] = requests.get(
            self._path, headers=self._headers, timeout=30
        ).json()
        return shown


def _latencies_ms(database_url: str, valkey_url: str) -> list[float]:
    latencies = []
    for _ in range(_ROUNDS):
        committed = _write(database_url)
        time.sleep(1.0)
        streams, _ = entered(valkey_url, "due")
        latencies += [(streams[due] - at_s) * 1000 for due, at_s in committed.items()]
    return latencies


def _write(database_url: str) -> dict[float, float]:
    """Write at a steady rate; return when each write was committed."""
    writer, committed = SqlWriter(database_url), {}
    begun_s = time.monotonic()
    for number in range(int(_ROUND_S * _WRITES_PER_S)):
        due = begun_s + number / _WRITES_PER_S
        time.sleep(max(0.0, due - time.monotonic()))
        writer.write(number, body=b"\x01due\0" + struct.pack("<d", due))
        committed[due] = time.monotonic()
    return committed
