"""A shop that only writes SQL, and its revenue by country as it changes.

    RILLBASE_KEY=rbk_dev_… python -m examples.postgresql
    RILLBASE_KEY=rbk_dev_… python -m examples.postgresql --database postgresql://me:secret@host/shop

Starts a small PostgreSQL unless one is given, creates a table of orders and a collection that
follows it, and subscribes to a live group over the collection while transactions insert, pay,
cancel and roll back. All writes are SQL. The key needs the scope `admin`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import requests
from rich.console import Console
from rich.table import Table
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from rillbase_server.launcher.embedded import EmbeddedPostgres

Json = dict[str, Any]
TIMEOUT_S = 30.0
NAME = "shop_orders"
COUNTRIES = ("FR", "JP", "KE", "PE", "SE")
PAUSE_S = 0.2
CREATE = """
CREATE TABLE IF NOT EXISTS shop_orders (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    country text NOT NULL, total numeric(10, 2) NOT NULL, state text NOT NULL DEFAULT 'open')
"""
GROUP = {
    "by": ["country"],
    "measures": {"orders": {"op": "count"}, "revenue": {"op": "sum", "field": "total"}},
}


class CallRejected(Exception):
    """Rillbase rejected a call; the text contains the reason."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m examples.postgresql", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--database", default="", help="a PostgreSQL with wal_level = logical")
    parser.add_argument(
        "--seconds", type=float, default=60, help="exit after this number of changes"
    )
    parser.add_argument("--url", default=os.environ.get("RILLBASE_URL", "http://127.0.0.1:8080"))
    parser.add_argument("--key", default=os.environ.get("RILLBASE_KEY", ""))
    options = parser.parse_args()
    if not options.key:
        parser.error("a key is required: --key or RILLBASE_KEY")
    return options


@contextmanager
def shop(url: str) -> Iterator[str]:
    """Yield the URL of a database with a table of orders."""
    if url:
        yield url
        return
    with tempfile.TemporaryDirectory(prefix="rillbase-shop-") as directory:
        Path(directory).chmod(0o755)
        server = EmbeddedPostgres(
            Path(directory) / "postgres",
            superuser_password="shop",  # noqa: S106 -- on this machine, for a minute
            durable=False,
            settings={"wal_level": "logical"},
        )
        with server:
            yield f"{server.url}?sslmode=disable"


class Control:
    """Calls of the control plane."""

    def __init__(self, url: str, key: str) -> None:
        self._headers = {"Authorization": f"Bearer {key}"}
        self._url = url
        who = self._answer("GET", f"{url}/v1/whoami")
        self._base = f"{url}/api/v1/tenants/{who['tenant']}/collections"

    def follow(self, database: str) -> None:
        """Create a collection that follows the table of orders."""
        self.forget()
        self._answer("POST", self._base, {"name": NAME})
        body = {"connection": database, "table": NAME}
        self._answer("POST", f"{self._base}/{NAME}/source", body)
        deadline = time.monotonic() + TIMEOUT_S
        while (source := self._answer("GET", f"{self._base}/{NAME}/source"))["state"] != "live":
            if time.monotonic() > deadline:
                raise CallRejected(f"the source is {source['state']}: {source['condition']}")
            time.sleep(PAUSE_S)

    def forget(self) -> None:
        """Drop the collection with its source, if it exists."""
        path = f"{self._base}/{NAME}"
        requests.delete(path, headers=self._headers, timeout=TIMEOUT_S)

    def _answer(self, method: str, address: str, body: Json | None = None) -> Json:
        answer = requests.request(
            method, address, json=body, headers=self._headers, timeout=TIMEOUT_S
        )
        content: Json = answer.json()
        if not answer.ok:
            raise CallRejected(content.get("detail") or content["title"])
        return content


def write(database: psycopg.Connection, rng: random.Random) -> None:
    """Run one transaction, as any application does; one in eight is rolled back."""
    with database.transaction() as transaction:
        for _ in range(rng.randint(1, 3)):
            database.execute(
                "INSERT INTO shop_orders (country, total) VALUES (%s, %s)",
                (rng.choice(COUNTRIES), rng.randint(500, 20_000) / 100),
            )
        database.execute(
            "UPDATE shop_orders SET state = 'paid' WHERE id = (SELECT min(id) FROM shop_orders "
            "WHERE state = 'open')"
        )
        if rng.random() < 1 / 8:
            raise psycopg.Rollback(transaction)


class Revenue:
    """The rows of the live group."""

    def __init__(self) -> None:
        self.rows: dict[str, Json] = {}
        self.events = 0

    def take(self, frame: Json) -> None:
        """Apply a message of the subscription."""
        if frame["type"] == "result":
            self.rows |= {str(item["id"]): item["document"] for item in frame["items"]}
        elif frame["type"] == "event":
            self.events += 1
            self.rows.pop(str(frame["key"]), None)
            if frame["match"] != "remove":
                self.rows[str(frame["key"])] = frame["document"]
        elif frame["type"] == "error":
            raise CallRejected(frame["error"].get("detail") or frame["error"]["title"])

    def drawn(self) -> Table:
        table = Table(title=f"paid revenue by country, after {self.events} events")
        for heading in ("country", "orders", "revenue"):
            table.add_column(heading)
        for row in sorted(self.rows.values(), key=lambda row: str(row["country"])):
            total = row["revenue"]
            shown = total["$numberDecimal"] if isinstance(total, dict) else total
            table.add_row(row["country"], str(row["orders"]), str(shown))
        return table


def watch(connection: ClientConnection, database: str, seconds: float) -> Revenue:
    """Write by SQL, and receive the changes from the subscription, until the time is over."""
    message = {"type": "subscribe", "id": "revenue", "collection": NAME, "group": GROUP}
    connection.send(json.dumps({**message, "filter": {"state": "paid"}}))
    revenue, rng, until = Revenue(), random.Random(7), time.monotonic() + seconds  # noqa: S311
    with psycopg.connect(database, autocommit=True) as writer:
        while time.monotonic() < until:
            write(writer, rng)
            pause = time.monotonic() + PAUSE_S
            while (left := pause - time.monotonic()) > 0:
                try:
                    revenue.take(json.loads(connection.recv(timeout=left)))
                except TimeoutError:
                    break
    return revenue


def main() -> int:
    """Run until the time is over or the user interrupts."""
    options, console = arguments(), Console()
    try:
        with shop(options.database) as database:
            with psycopg.connect(database, autocommit=True) as owner:
                owner.execute(CREATE)
            control = Control(options.url.rstrip("/"), options.key)
            control.follow(database)
            console.print(f"{NAME} follows its table; from here on, all writes are SQL")
            address = options.url.rstrip("/").replace("http", "ws", 1) + "/v1/realtime"
            with connect(
                address,
                additional_headers={"Authorization": f"Bearer {options.key}"},
                subprotocols=["rillbase.v1"],  # type: ignore[list-item]
            ) as connection:
                revenue = watch(connection, database, options.seconds)
            console.print(revenue.drawn())
            control.forget()
    except KeyboardInterrupt:
        return 0
    except (CallRejected, OSError, psycopg.Error, ConnectionClosed) as refused:
        print(f"Rillbase at {options.url}: {refused}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
