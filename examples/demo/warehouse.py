"""The company's stock: a table in its own PostgreSQL, which it changes with SQL alone.

A collection follows the table. The database is made anew with each start, in a directory that is
removed in the end, and listens on this machine alone.
"""

from __future__ import annotations

import random
import secrets
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from examples.browser.api import Api
from examples.demo.couriers import DISTRICTS, GOODS
from examples.demo.tenant import EXISTS, REJECTED, create_missing
from rillbase_server.launcher.embedded import EmbeddedPostgres

COLLECTION = "stock"
#: As much as a table of a few rows needs.
SETTINGS = {
    "wal_level": "logical",
    "shared_buffers": "2MB",
    "max_connections": "10",
    "max_wal_senders": "2",
    "max_replication_slots": "4",
    "max_slot_wal_keep_size": "64MB",
    "autovacuum": "off",
}
CREATE = """
CREATE TABLE stock (
    id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    goods text NOT NULL,
    district text NOT NULL,
    on_hand int NOT NULL,
    price numeric(8, 2) NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now())
"""
INSERT = "INSERT INTO stock (goods, district, on_hand, price) VALUES (%s, %s, %s, %s)"
SELL = """
UPDATE stock SET on_hand = on_hand - 1, updated_at = now() WHERE goods = %s AND district = %s
"""
RESTOCK = "UPDATE stock SET on_hand = on_hand + %s, updated_at = now() WHERE on_hand < %s"
CRATE, LOW = 24, 4


@dataclass(frozen=True)
class Warehouse:
    """The open database."""

    url: str
    database: psycopg.Connection

    @classmethod
    @contextmanager
    def opened(cls, rng: random.Random) -> Iterator[Warehouse]:
        """Start the database, with some stock of everything."""
        with tempfile.TemporaryDirectory(prefix="rillbase-demo-") as directory:
            # The server may run under another account than this program.
            Path(directory).chmod(0o755)
            server = EmbeddedPostgres(
                Path(directory) / "postgres",
                superuser_password=secrets.token_urlsafe(),
                durable=False,
                settings=SETTINGS,
            )
            with server, psycopg.connect(server.url, autocommit=True) as database:
                database.execute(CREATE)
                for goods, (_, dearest) in GOODS.items():
                    for district in DISTRICTS:
                        on_hand = rng.randint(LOW, CRATE)
                        database.execute(INSERT, (goods, district, on_hand, dearest))
                yield cls(f"{server.url}?sslmode=disable", database)

    def follow(self, api: Api, tenant: str) -> None:
        """Let a collection follow the table, unless loopback targets are off."""
        collections = f"/api/v1/tenants/{tenant}/collections"
        create_missing(api, collections, {"name": COLLECTION})
        source = f"{collections}/{COLLECTION}/source"
        sources = api.call("GET", f"/api/v1/tenants/{tenant}/sources?limit=200")["items"]
        followed = [one["collection"] for one in sources if one["state"] != "removing"]
        if COLLECTION in followed:
            api.call("PATCH", source, {"connection": self.url}, but=REJECTED)
        else:
            body = {"connection": self.url, "table": "stock"}
            api.call("POST", source, body, but=REJECTED | EXISTS)

    def sell(self, sales: Iterable[dict[str, Any]]) -> None:
        """Take what was sold from the stock, and order more of what is running low."""
        with self.database.transaction():
            for sale in sales:
                self.database.execute(SELL, (sale["goods"], sale["district"]))
            self.database.execute(RESTOCK, (CRATE, LOW))
