"""Upload a million posts to an analytics table, and show their progress through the stages.

    RILLBASE_KEY=rbk_dev_… python -m examples.posts [--rows 1000000]

The key needs the scopes `analytics:write` and `admin`; `make run` prints one. The rows are sent
over plain HTTP, as Arrow streams, a hundred thousand at a time. Then the program shows how far they
have progressed, and runs a query at several freshnesses.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

ARROW = "application/vnd.apache.arrow.stream"
BATCH_ROWS = 100_000
AUTHORS = 5_000
POLL_INTERVAL_S = 0.5
WORDS = ("rain", "tea", "harbour", "slow", "green", "letter", "north", "paper", "window", "salt")
STAGES = ("unsorted", "sorted", "merged", "authority")
CONFLICT = 409
DATASET = {
    "name": "posts",
    "tables": {
        "posts": {
            "columns": {"id": "int64", "author": "string", "likes": "int64", "text": "string"},
            "key": ["id"],
            "views": {"by_author": {"key": ["author", "id"], "columns": ["author", "id", "likes"]}},
        }
    },
}


@dataclass(frozen=True, slots=True)
class Rillbase:
    """Calls an installation with a key."""

    url: str
    key: str

    def call(self, method: str, path: str, body: bytes | None = None, kind: str = "") -> Any:
        headers = {"Authorization": f"Bearer {self.key}"}
        if body is not None:
            headers["Content-Type"] = kind or "application/json"
        request = urllib.request.Request(  # noqa: S310 -- the URL is the caller's own
            self.url + path, data=body, headers=headers, method=method
        )
        with urllib.request.urlopen(request) as answer:  # noqa: S310
            return json.load(answer)

    def ensure_dataset(self) -> None:
        tenant = self.call("GET", "/v1/whoami")["tenant"]
        try:
            self.call("POST", f"/api/v1/tenants/{tenant}/datasets", json.dumps(DATASET).encode())
        except urllib.error.HTTPError as error:
            if error.code != CONFLICT:
                raise


def posts(first: int, count: int, seed: int) -> bytes:
    """Return posts as an Arrow stream."""
    rng = np.random.default_rng(seed + first)
    words = np.array(WORDS)[rng.integers(0, len(WORDS), (8, count))]
    text = words[0]
    for more in words[1:]:
        text = np.char.add(np.char.add(text, " "), more)
    authors = np.char.add("author-", rng.integers(0, AUTHORS, count).astype(str))
    rows = pa.table(
        {
            "id": np.arange(first, first + count),
            "author": authors,
            "likes": rng.integers(0, 1000, count),
            "text": text,
        }
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())


def upload(rillbase: Rillbase, rows: int, console: Console) -> None:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]:,.0f} rows/s"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("uploading", total=rows, rate=0.0)
        begin = time.monotonic()
        for first in range(0, rows, BATCH_ROWS):
            count = min(BATCH_ROWS, rows - first)
            body = posts(first, count, seed=7)
            rillbase.call("POST", "/v1/datasets/posts/uploads?table=posts", body, ARROW)
            rate = (first + count) / (time.monotonic() - begin)
            progress.update(task, advance=count, rate=rate)


def watch(rillbase: Rillbase, rows: int, console: Console) -> None:
    """Show the number of rows in each stage until all are in the authority."""
    columns = (TextColumn("{task.description:>10}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console) as progress:
        tasks = {stage: progress.add_task(stage, total=rows) for stage in STAGES}
        while True:
            status = rillbase.call("GET", "/v1/datasets/posts/pipeline")
            for stage, task in tasks.items():
                progress.update(task, completed=status["stages"][stage]["rows"])
            if status["authority_state"] == status["state"]:
                return
            if status["error"]:
                raise SystemExit(f"the pipeline has stopped: {status['error']}")
            time.sleep(POLL_INTERVAL_S)


def ask(rillbase: Rillbase, console: Console) -> None:
    """Query the most active author, at several freshnesses."""
    table = Table(title="the most active author")
    for name in ("freshness", "author", "posts", "state", "rows read", "ms"):
        table.add_column(name)
    for freshness in ("any", 15, 0):
        query = {
            "table": "posts",
            "group_by": ["author"],
            "aggregates": {"posts": {"op": "count"}},
            "order": [["posts", -1]],
            "limit": 1,
            "freshness": freshness,
        }
        begin = time.monotonic()
        result = rillbase.call("POST", "/v1/datasets/posts/query", json.dumps(query).encode())
        spent_ms = (time.monotonic() - begin) * 1000
        row = result["rows"][0] if result["rows"] else {"author": "nobody yet", "posts": 0}
        read = sum(stage["rows"] for stage in result["read"].values())
        cells = (freshness, row["author"], row["posts"], result["state"], read, round(spent_ms))
        table.add_row(*map(str, cells))
    console.print(table)


def main() -> None:
    """Upload, query during the uploads, wait for the stages, and query again."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--url", default=os.environ.get("RILLBASE_URL", "http://127.0.0.1:8080"))
    arguments = parser.parse_args()
    key = os.environ.get("RILLBASE_KEY", "")
    if not key:
        sys.exit("Set RILLBASE_KEY to a secret key; `make run` prints one.")
    rillbase, console = Rillbase(arguments.url, key), Console()
    rillbase.ensure_dataset()
    upload(rillbase, arguments.rows, console)
    ask(rillbase, console)
    watch(rillbase, arguments.rows, console)
    ask(rillbase, console)


if __name__ == "__main__":
    main()
