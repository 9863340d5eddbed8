"""The environment of a test run, loaded with `-p` so that it is set before Django's settings are
imported.

Settings are typed, derived from the environment and read once. Therefore this module chooses the
addresses of the run's servers and the name of each process's database; `tests/servers.py` starts
the servers at these addresses.
"""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SUPERUSER = "postgres"
PASSWORD = "tests"
DIRECTORY = "RILLBASE_DATA_DIR"
POSTGRES = "RILLBASE_TEST_POSTGRES"
VALKEY = "RILLBASE_TEST_VALKEY"

SETTINGS = {
    "RILLBASE_ENV": "test",
    "RILLBASE_SECRET_KEY": "test-secret-key-" + "s" * 32,
    "RILLBASE_KEY_PEPPER": "test-key-pepper-" + "p" * 32,
    "RILLBASE_HOSTS": "localhost,127.0.0.1",
    "RILLBASE_PUBLIC_URL": "http://localhost",
    "RILLBASE_ALLOW_LOOPBACK_TARGETS": "true",
    "RILLBASE_SIGN_UP": "open",
    "RILLBASE_DEFAULT_PLAN": "standard",
    "RILLBASE_DATABASE_POOL_SIZE": "8",
    # One test starts Spark; for the others processes suffice, which start faster.
    "RILLBASE_GRID": "processes",
    # Tenants may request a dedicated grid. No supervisor creates it, so the row stays pending.
    "RILLBASE_CLUSTERS": "kubernetes",
    "RILLBASE_CLUSTERS_IMAGES": "stable=rillbase/spark:1,next=rillbase/spark:2",
    "RILLBASE_ANALYTICS_WORKERS": "threads",
    # Tests share 127.0.0.1, and many of them send wrong credentials.
    "RILLBASE_REFUSALS_PER_MINUTE": "1000000",
}


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests() -> Generator[None]:
    """Set the environment; pytest-django imports the settings right after it."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is None:
        _choose_servers()
    _choose_databases(worker or "main")
    return (yield)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """Remove the run's files after its servers have stopped."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        _directory.cleanup()


def _choose_servers() -> None:
    from rillbase_server.launcher.ports import free_port

    global _directory  # noqa: PLW0603 - one run a process, and its directory lives as long
    _directory = tempfile.TemporaryDirectory(prefix="rbt-", ignore_cleanup_errors=True)
    directory = Path(_directory.name)
    _use_for_temporary_files(directory / "t")
    # PostgreSQL runs under another account if the tests run as root.
    directory.chmod(0o755)
    mails = directory / "mails"
    mails.mkdir()
    ports: list[int] = []
    while len(ports) < 3:
        ports.append(free_port(avoid=ports))
    postgres, valkey, node = ports
    os.environ.update(SETTINGS)
    # Every process imports the code and the tests, and the first one leaves their bytecode.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    os.environ[DIRECTORY] = str(directory)
    os.environ["RILLBASE_EMAIL_URL"] = f"dir://{mails}"
    os.environ[POSTGRES] = f"postgresql://{SUPERUSER}:{PASSWORD}@127.0.0.1:{postgres}/postgres"
    os.environ[VALKEY] = f"redis://:{PASSWORD}@127.0.0.1:{valkey}/0"
    os.environ["STORAGE_URL"] = f"redis://admin:{secrets.token_hex(16)}@127.0.0.1:{node}"
    # For processes started by tests.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "platform")])


def _use_for_temporary_files(folder: Path) -> None:
    """Remove temporary files with the run, but not the last runs' `tmp_path`, which show why a test
    failed. The path is short, because tests make sockets below it.
    """
    folder.mkdir()
    folder.chmod(0o1777)
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
    os.environ["TMPDIR"], tempfile.tempdir = str(folder), None


def _choose_databases(worker: str) -> None:
    """Set this process's own databases: a copy of the template, and a number in Valkey."""
    number = int(worker.removeprefix("gw")) if worker.startswith("gw") else 0
    os.environ["DATABASE_URL"] = on_database(os.environ[POSTGRES], f"rillbase_{worker}")
    os.environ["REDIS_URL"] = on_database(os.environ[VALKEY], str(number))


def on_database(url: str, name: str) -> str:
    """Return a server's URL with another database."""
    return url.rpartition("/")[0] + "/" + name


_directory: tempfile.TemporaryDirectory[str]
