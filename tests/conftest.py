"""Real servers for the whole run: one PostgreSQL, one Valkey and one storage node, a database for
each worker.

Tests commit for real and clean nothing up: each makes tenants and users of its own, as many
customers share one installation. The servers start in pytest's main process, which also migrates
a template database; workers (pytest-xdist) get a copy of it each.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from psycopg import sql

from tests.launched import Place
from tests.launcher_command import reachable_directory
from tests.own_node import OwnNode
from tests.own_valkey import OwnValkey

if TYPE_CHECKING:
    from foundation.valkey_wire import ValkeyWire

# How long an example takes says more about what else the machine does than about the code.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")

ROOT = Path(__file__).resolve().parents[1]
TEMPLATE = "rillbase_template"
_SERVERS = pytest.StashKey[ExitStack]()

TEST_ENVIRONMENT = {
    "RILLBASE_ENV": "test",
    "RILLBASE_SECRET_KEY": "test-secret-key-" + "s" * 32,
    "RILLBASE_KEY_PEPPER": "test-key-pepper-" + "p" * 32,
    "RILLBASE_HOSTS": "localhost,127.0.0.1",
    "RILLBASE_PUBLIC_URL": "http://localhost",
    "RILLBASE_ALLOW_LOOPBACK_TARGETS": "true",
    "RILLBASE_SIGN_UP": "open",
    "RILLBASE_DEFAULT_PLAN": "standard",
    "RILLBASE_DATABASE_POOL_SIZE": "8",
    # One test starts Spark; whoever else needs a grid is quicker without.
    "RILLBASE_GRID": "processes",
    # Tenants may ask for a grid of their own; where none is brought about the row waits.
    "RILLBASE_CLUSTERS": "kubernetes",
    "RILLBASE_CLUSTERS_IMAGES": "stable=rillbase/spark:1,next=rillbase/spark:2",
    "RILLBASE_ANALYTICS_WORKERS": "threads",
    # Tests share 127.0.0.1, and many of them send wrong credentials.
    "RILLBASE_REFUSALS_PER_MINUTE": "1000000",
    "DJANGO_SETTINGS_MODULE": "rillbase_server.settings",
}


def pytest_configure(config: pytest.Config) -> None:
    """Start the servers once, then set this process up on a database of its own."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is None:
        _start_servers(config)
    if worker is not None or config.getoption("numprocesses", default=None) in (None, 0):
        _enter_database(worker or "main")


def pytest_unconfigure(config: pytest.Config) -> None:
    servers = config.stash.get(_SERVERS, None)
    if servers is not None:
        servers.close()


def _start_servers(config: pytest.Config) -> None:
    from rillbase_server.launcher.embedded import EmbeddedPostgres, EmbeddedValkey

    servers = ExitStack()
    config.stash[_SERVERS] = servers
    directory = Path(servers.enter_context(tempfile.TemporaryDirectory(prefix="rillbase-tests-")))
    directory.chmod(0o755)
    mails = directory / "mails"
    mails.mkdir()
    postgres = servers.enter_context(
        EmbeddedPostgres(directory / "postgres", superuser_password="tests", durable=False)
    )
    valkey = servers.enter_context(EmbeddedValkey(directory / "valkey", password="tests"))
    node = OwnNode(directory / "node")
    servers.callback(node.close)
    with psycopg.connect(postgres.url, autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(TEMPLATE)))
    os.environ.update(TEST_ENVIRONMENT)
    os.environ["RILLBASE_DATA_DIR"] = str(directory)
    os.environ["RILLBASE_EMAIL_URL"] = f"dir://{mails}"
    os.environ["RILLBASE_TEST_POSTGRES"] = postgres.url
    os.environ["RILLBASE_TEST_VALKEY"] = valkey.url
    os.environ["REDIS_URL"] = valkey.url
    os.environ["STORAGE_URL"] = node.url
    os.environ["DATABASE_URL"] = _on_database(postgres.url, TEMPLATE)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "platform")])
    subprocess.run([sys.executable, "-m", "django", "prepare_database"], check=True, cwd=ROOT)


def _enter_database(worker: str) -> None:
    """Copy the template for this process and set Django up on the copy."""
    server = os.environ["RILLBASE_TEST_POSTGRES"]
    name = f"rillbase_{worker}"
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
                sql.Identifier(name), sql.Identifier(TEMPLATE)
            )
        )
    os.environ["DATABASE_URL"] = _on_database(server, name)
    number = int(worker.removeprefix("gw")) if worker.startswith("gw") else 0
    os.environ["REDIS_URL"] = os.environ["RILLBASE_TEST_VALKEY"].rpartition("/")[0] + f"/{number}"

    import django

    django.setup()


def _on_database(url: str, name: str) -> str:
    return url.rpartition("/")[0] + "/" + name


@pytest.fixture(scope="session")
def postgres_url() -> str:
    """The URL of this worker's database, for a role that may do everything."""
    return os.environ["DATABASE_URL"]


@pytest.fixture(scope="session")
def valkey_url() -> str:
    """The URL of this worker's database in the shared Valkey."""
    return os.environ["REDIS_URL"]


@pytest.fixture
def settings_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Change environment variables for one test; the typed settings follow."""
    from foundation.environment import environment

    change = monkeypatch.setenv

    def change_and_read_again(name: str, value: str, prepend: str | None = None) -> None:
        change(name, value, prepend)
        # Now and not before: threads of the server read the settings at any moment.
        environment.cache_clear()

    monkeypatch.setattr(monkeypatch, "setenv", change_and_read_again)
    environment.cache_clear()
    yield monkeypatch
    monkeypatch.undo()
    environment.cache_clear()


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """A real HTTP server in this process; yields its base URL."""
    from tests.server import running_server

    with running_server() as url:
        yield url


@pytest.fixture
def place() -> Iterator[Place]:
    """A data directory in which a test may bring up a Rillbase of its own."""
    with reachable_directory() as directory:
        yield Place(directory)


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[OwnValkey]:
    """An event layer of the test's own, that may be killed and emptied."""
    own = OwnValkey(tmp_path)
    yield own
    own.close()


@pytest.fixture
async def wire(valkey: OwnValkey) -> AsyncIterator[ValkeyWire]:
    """A connection to it."""
    # Settings can be imported once there is an environment.
    from foundation.valkey_wire import ValkeyWire

    wire = ValkeyWire(valkey.url, connect_timeout_s=10, answer_timeout_s=10)
    yield wire
    await wire.aclose()


@pytest.fixture(autouse=True)
def _connections_go_back() -> Iterator[None]:
    """Give the test thread's pooled connections back after each test."""
    yield
    from django.db import connections

    connections.close_all()
