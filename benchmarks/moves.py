"""Moves of a collection between backends, while it is written and while it is not.

    python -m benchmarks.moves [--quick]

One web process, PostgreSQL with synchronous commit and a storage node that syncs every write. Eight
writers increment a field of random documents; each has documents of its own and notes what was
acknowledged. The mover is a separate process, as in an installation.
"""

from __future__ import annotations

import argparse
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

import requests

from benchmarks.support.installation import Installation, installation, python, web
from benchmarks.support.native import STORAGE_NODE, built
from benchmarks.support.own_server import TOKEN
from benchmarks.support.report import Report
from benchmarks.support.storage_node import running_node

WRITERS, BULK = 8, 1_000
NAME = "moving"
_SEED = """
import json
import django; django.setup()
from documents.models import Collection, Index
from foundation.scope import scoped
from tenants.models import Quota
from tests.make import make_key, make_tenant
account = make_tenant(plan="dedicated")
names = ("requests_per_s", "requests_burst")
Quota(tenant=account.tenant, limits=dict.fromkeys(names, 1000000)).save(using="staff")
with scoped(tenant_id=account.tenant.id):
    collection = Collection.objects.create(name="moving")
    for name, unique in (("code", True), ("shop", False)):
        fields = [[name, 1]]
        Index.objects.create(
            collection=collection, name=name, fields=fields, unique=unique, state="ready"
        )
key = make_key(account.tenant, scopes=["documents:read", "documents:write"])
print(json.dumps([key, str(account.tenant.id), str(collection.pk)]))
"""
_MOVE = """
import sys, time
from datetime import timedelta
from uuid import UUID
import django; django.setup()
from documents.backend import Backend
from documents.collections import actions, mover
from documents.collections.declarations import read_declarations
from foundation.scope import scoped
tenant, collection = UUID(sys.argv[1]), UUID(sys.argv[2])
with scoped(tenant_id=tenant):
    row = actions.lock_by_name("moving")
    actions.do_change(None, row, {"backend": sys.argv[3]}, read_declarations(b"{}"))
# No grid serves live queries here.
mover.GRID_WAIT = timedelta(0)
began_s = time.monotonic()
while mover.step(tenant, collection) is not mover.MoveProgress.FINISHED:
    pass
print(time.monotonic() - began_s)
"""


@dataclass
class Writers:
    """Clients that change documents of the collection."""

    base: str
    key: str
    documents: int
    #: By document, how often it was changed.
    changes: Counter[int] = field(default_factory=Counter)
    #: The longest time from request to response.
    longest_s: float = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Let them write until the block ends."""
        stop = threading.Event()
        with ThreadPoolExecutor(WRITERS) as pool:
            writers = [pool.submit(self._write, number, stop) for number in range(WRITERS)]
            try:
                yield
            finally:
                stop.set()
            for writer in writers:
                writer.result()

    def _write(self, number: int, stop: threading.Event) -> None:
        rng, session = random.Random(number), self.session()
        while not stop.is_set():
            document = rng.randrange(self.documents // WRITERS) * WRITERS + number
            path = f'{self.base}/documents/~{{"$numberInt":"{document}"}}'
            began_s = time.monotonic()
            answer = session.patch(path, data=b'{"$inc":{"n":1}}')
            self.longest_s = max(self.longest_s, time.monotonic() - began_s)
            answer.raise_for_status()
            self.changes[document] += 1

    def session(self) -> requests.Session:
        session = requests.Session()
        session.headers["Authorization"] = f"Bearer {self.key}"
        session.headers["Content-Type"] = "application/json"
        return session

    def wrong(self) -> int:
        """Return how many documents are missing, or differ from what was acknowledged."""
        session, right, cursor = self.session(), 0, None
        while True:
            query = {"sort": [["_id", 1]], "limit": BULK, "cursor": cursor}
            page = session.post(f"{self.base}/query", data=json.dumps(query)).json()
            for item in page["items"]:
                n = self.changes[item["id"]]
                right += item["document"]["n"] == n and item["version"] == n + 1
            cursor = page["next_cursor"]
            if cursor is None:
                return self.documents - right


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="finish in about two minutes")
    is_quick = parser.parse_args().quick
    documents = 20_000 if is_quick else 1_000_000
    report = Report("moves", {"documents": documents, "writers": WRITERS})
    with ExitStack() as stack:
        installed = stack.enter_context(installation())
        port = stack.enter_context(running_node(built(STORAGE_NODE), "sync"))
        storage = {"STORAGE_URL": f"redis://admin:{TOKEN}@127.0.0.1:{port}"}
        installed = replace(installed, environment={**installed.environment, **storage})
        key, *place = json.loads(python(installed, _SEED))
        server = stack.enter_context(web(installed, "rillbase_server.asgi:application", storage))
        base = f"http://127.0.0.1:{server.port}/v1/collections/{NAME}"
        writers = Writers(base, key, documents)
        _fill(writers)
        for backend in ("native", "postgres"):
            _measure(report, installed, (writers, place), backend, is_written=False)
        for backend in ("native", "postgres"):
            _measure(report, installed, (writers, place), backend, is_written=True)
        report.add("wrong", writers.wrong(), "", "documents lost or changed otherwise", "<= 0")
    report.finish()


def _fill(writers: Writers) -> None:
    session = writers.session()
    for start in range(0, writers.documents, BULK):
        inserts = [
            {"insert": {"_id": n, "code": n, "shop": n % 50, "n": 0, "text": "x" * 200}}
            for n in range(start, min(start + BULK, writers.documents))
        ]
        body = {"operations": inserts, "ordered": False}
        answer = session.post(f"{writers.base}/documents:bulk", data=json.dumps(body))
        answer.raise_for_status()


def _measure(
    report: Report,
    installed: Installation,
    moving: tuple[Writers, list[str]],
    backend: str,
    *,
    is_written: bool,
) -> None:
    writers, place = moving
    if not is_written:
        seconds = float(python(installed, _MOVE, *place, backend))
        rate = writers.documents / seconds
        report.add(f"to_{backend}_per_s", rate, "/s", f"documents moved to {backend}")
        return
    with writers.running():
        before = writers.changes.total()
        time.sleep(3)
        rate_before = (writers.changes.total() - before) / 3
        before, began_s, writers.longest_s = writers.changes.total(), time.monotonic(), 0.0
        seconds = float(python(installed, _MOVE, *place, backend))
        elapsed_s = time.monotonic() - began_s
        rate = (writers.changes.total() - before) / elapsed_s
        # Writes to PostgreSQL wait until no server can read the node any more.
        time.sleep(3)
    moved = writers.documents / seconds
    report.add(f"to_{backend}_written_per_s", moved, "/s", f"the same with {WRITERS} writers")
    report.add(f"to_{backend}_writes", rate / rate_before, "x", "writes during the move ÷ before")
    longest = {"native": "<= 1", "postgres": "<= 3"}[backend]
    report.add(f"to_{backend}_longest_write_s", writers.longest_s, "s", "longest write", longest)


if __name__ == "__main__":
    main()
