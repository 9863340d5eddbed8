"""The servers that a run shares: one PostgreSQL, one Valkey and one storage node.

Their addresses are in the environment (`tests/environment.py`). Each process of the run uses its
own copy of a migrated template database.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from rillbase_server.launcher.embedded import EmbeddedPostgres, EmbeddedValkey
from tests.environment import DIRECTORY, PASSWORD, POSTGRES, ROOT, VALKEY, on_database
from tests.own_node import OwnNode

TEMPLATE = "rillbase_template"
#: Each process of the run has pools of its own, as have the servers and nodes that it starts.
SETTINGS = {"max_connections": "250"}


@contextmanager
def running_servers() -> Iterator[None]:
    """Start the servers and migrate the template database; stop them at the end."""
    directory = Path(os.environ[DIRECTORY])
    node = urlsplit(os.environ["STORAGE_URL"])
    postgres = EmbeddedPostgres(
        directory / "postgres",
        superuser_password=PASSWORD,
        port=urlsplit(os.environ[POSTGRES]).port,
        durable=False,
        settings=SETTINGS,
    )
    valkey = EmbeddedValkey(
        directory / "valkey", password=PASSWORD, port=urlsplit(os.environ[VALKEY]).port
    )
    with postgres, valkey:
        own_node = OwnNode(directory / "node", port=node.port, token=node.password)
        try:
            _make_template()
            yield
        finally:
            own_node.close()


def copy_template() -> None:
    """Create this process's database."""
    name = urlsplit(os.environ["DATABASE_URL"]).path.lstrip("/")
    statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
    _as_superuser(statement.format(sql.Identifier(name), sql.Identifier(TEMPLATE)))


def _make_template() -> None:
    _as_superuser(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(TEMPLATE)))
    subprocess.run(
        [sys.executable, "-m", "django", "prepare_database"],
        check=True,
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": on_database(os.environ[POSTGRES], TEMPLATE)},
    )


def _as_superuser(statement: sql.Composed) -> None:
    with psycopg.connect(os.environ[POSTGRES], autocommit=True) as admin:
        admin.execute(statement)
