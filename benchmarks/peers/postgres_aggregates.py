"""Aggregates in PostgreSQL: by a trigger on the table of events, or by upserts.

Driven by pgbench with prepared statements. One table contains the events; four more contain the
five-minute rows of endpoints, servers, apps and customers. The trigger changes one row of each for
every event, as in the paper's comparison; the upsert is one statement that inserts the events and
all changes, summed up first if there are many. Commits are synchronous.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from rillbase_server.launcher.embedded import EmbeddedPostgres
from rillbase_server.launcher.postgres import binary

_LEVELS = {
    "by_customer": ("customer",),
    "by_app": ("customer", "app"),
    "by_server": ("customer", "app", "server"),
    "by_endpoint": ("customer", "app", "server", "endpoint"),
}
_BUCKET = "date_bin('5 minutes', at, 'epoch')"
_EVENTS = """
CREATE TABLE calls (
    customer text, app text, server text, endpoint text,
    latency_ms bigint, at timestamptz NOT NULL DEFAULT now()
)
"""


@contextmanager
def running() -> Iterator[str]:
    """Yield the URL of a PostgreSQL of the benchmark's own."""
    with tempfile.TemporaryDirectory(prefix="rillbase-postgres-") as directory:
        # Started as root, the server runs as another user, which needs access.
        Path(directory).chmod(0o755)
        with EmbeddedPostgres(Path(directory) / "postgres", superuser_password="bench") as server:
            yield server.url


def rate(url: str, kind: str, *, hot: int, clients: int, batch: int, seconds: int) -> float:
    """Return the events per second of PostgreSQL; `kind` is trigger, upsert or plain."""
    _prepare(url, kind, hot)
    with tempfile.TemporaryDirectory(prefix="rillbase-pgbench-") as directory:
        script = Path(directory) / "script.sql"
        script.write_text(_script(kind, hot, batch))
        return _pgbench(url, script, clients, seconds) * batch


def query_ms(url: str, hours: int) -> float:
    """Return how long a dashboard's query of the raw events takes."""
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(
            f"EXPLAIN (ANALYZE, FORMAT JSON) SELECT endpoint, {_BUCKET}, count(*), "
            "sum(latency_ms) FROM calls WHERE customer = 'c0' "
            f"AND at > now() - interval '{hours} hours' GROUP BY 1, 2"
        )
        row = cursor.fetchone()
        assert row is not None
        return float(row[0][0]["Execution Time"])


def _prepare(url: str, kind: str, hot: int) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for table in ("calls", *_LEVELS):
            connection.execute(f"DROP TABLE IF EXISTS {table}")
        connection.execute(_EVENTS)
        connection.execute("CREATE INDEX ON calls (customer, at)")
        for table, columns in _LEVELS.items():
            names = ", ".join(columns)
            connection.execute(
                f"CREATE TABLE {table} ({' text, '.join(columns)} text, bucket timestamptz, "
                f"calls bigint, latency_ms bigint, PRIMARY KEY ({names}, bucket))"
            )
        if kind == "trigger":
            connection.execute(_trigger())
            connection.execute(
                "CREATE TRIGGER keep AFTER INSERT ON calls FOR EACH ROW EXECUTE FUNCTION keep()"
            )
        # All rows exist before the measurement starts.
        connection.execute(f"INSERT INTO calls {_calls(hot, '0')}" if hot > 1 else "SELECT 1")


def _calls(count: int, first: str) -> str:
    """Select events of consecutive endpoints."""
    return (
        f"SELECT 'c' || e / 1000, 'a' || e / 100, 's' || e / 10, 'e' || e, 7 "
        f"FROM generate_series({first}, {first} + {count} - 1) AS e"
    )


def _trigger() -> str:
    upserts = "\n".join(
        f"INSERT INTO {table} VALUES ({', '.join(f'NEW.{name}' for name in columns)}, "
        f"date_bin('5 minutes', NEW.at, 'epoch'), 1, NEW.latency_ms) "
        f"ON CONFLICT ({', '.join(columns)}, bucket) DO UPDATE SET calls = {table}.calls + 1, "
        f"latency_ms = {table}.latency_ms + excluded.latency_ms;"
        for table, columns in _LEVELS.items()
    )
    return (
        "CREATE OR REPLACE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN\n"
        f"{upserts}\nRETURN NULL; END $$"
    )


def _script(kind: str, hot: int, batch: int) -> str:
    chosen = f"\\set e random(0, {hot - 1})\n\\set latency random(1, 250)\n"
    rows = (
        "SELECT 'c' || e / 1000, 'a' || e / 100, 's' || e / 10, 'e' || e, "
        f"(:latency)::bigint + n, now() FROM (SELECT n, ((:e)::int + n) % {hot} AS e "
        f"FROM generate_series(0, {batch - 1}) AS n) AS calls_of"
    )
    columns = "customer, app, server, endpoint, latency_ms, at"
    if kind != "upsert":
        return f"{chosen}INSERT INTO calls ({columns}) {rows};\n"
    upserts = ", ".join(
        f"{table}_kept AS (INSERT INTO {table} SELECT {', '.join(names)}, {_BUCKET}, "
        f"count(*), sum(latency_ms) FROM fresh GROUP BY {', '.join(names)}, {_BUCKET} "
        f"ORDER BY {', '.join(names)} "
        f"ON CONFLICT ({', '.join(names)}, bucket) DO UPDATE SET "
        f"calls = {table}.calls + excluded.calls, "
        f"latency_ms = {table}.latency_ms + excluded.latency_ms)"
        for table, names in _LEVELS.items()
    )
    return (
        f"{chosen}WITH fresh AS (INSERT INTO calls ({columns}) {rows} RETURNING *), "
        f"{upserts} SELECT 1;\n"
    )


def _pgbench(url: str, script: Path, clients: int, seconds: int) -> float:
    """Return the transactions per second."""
    parts = urlsplit(url)
    command = [
        str(binary("pgbench")), "--no-vacuum", "--protocol=prepared", f"--file={script}",
        f"--client={clients}", f"--jobs={min(clients, 2)}", f"--time={seconds}",
        "--max-tries=100",
        f"--host={parts.hostname}", f"--port={parts.port}", f"--username={parts.username}",
        parts.path.lstrip("/"),
    ]  # fmt: skip
    environment = {**os.environ, "PGPASSWORD": parts.password or ""}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    match = re.search(r"tps = ([0-9.]+)", done.stdout)
    if match is None:
        raise RuntimeError(done.stdout + done.stderr)
    return float(match[1])
