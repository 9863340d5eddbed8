"""Fixtures of all tests.

Tests commit transactions and clean nothing up: each creates its own tenants and users, as customers
of one installation do. Rolling back would hide the effects of row-level security, several roles and
commit hooks, so pytest-django's database guard is disabled for the whole session.
"""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.hashers import Argon2PasswordHasher
from hypothesis import HealthCheck, settings
from pydantic import ValidationError
from pytest_django import DjangoDbBlocker
from xdist import is_xdist_controller, is_xdist_worker

from tests.busy_machine import extend_time_limits
from tests.launcher_command import reachable_directory
from tests.launcher_process import LauncherDirectory
from tests.own_node import OwnNode
from tests.own_valkey import OwnValkey
from tests.servers import copy_template, running_servers

if TYPE_CHECKING:
    from _collections_abc import dict_values

    from foundation.valkey_wire import ValkeyWire

# The duration of an example depends more on the machine's other load than on the code.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")

_SERVERS = pytest.StashKey[ExitStack]()


class LoggerDict(dict[str, Any]):
    """The loggers of this process. pytest iterates over them before each phase of a test, while
    threads of the server may create more.
    """

    def values(self) -> dict_values[str, Any]:
        return self.copy().values()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Start the servers in the controller, which outlives the workers that share them."""
    logging.root.manager.loggerDict = LoggerDict(logging.root.manager.loggerDict)
    # A hash of a password takes 130 ms of a core by default.
    Argon2PasswordHasher.time_cost = 1
    Argon2PasswordHasher.memory_cost, Argon2PasswordHasher.parallelism = 8, 1
    if is_xdist_controller(session):
        servers = session.config.stash[_SERVERS] = ExitStack()
        servers.enter_context(running_servers())


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Leave imported code and collected tests, half a million objects, to no garbage collection."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest tests: the last of them would keep one process busy at the end."""
    items.sort(key=lambda item: not item.nodeid.startswith("tests/e2e/"))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    servers = session.config.stash.get(_SERVERS, None)
    if servers is not None:
        servers.close()


@pytest.fixture(scope="session")
def django_db_setup(request: pytest.FixtureRequest) -> Iterator[None]:
    """Give the process its own migrated database, and its own servers unless the run shares
    them.
    """
    with ExitStack() as servers:
        if not is_xdist_worker(request.session):
            servers.enter_context(running_servers())
        copy_template()
        yield


@pytest.fixture(scope="session", autouse=True)
def _time_limits_are_extended(django_db_setup: None) -> None:
    extend_time_limits()


@pytest.fixture(scope="session", autouse=True)
def _commits_are_real(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    with django_db_blocker.unblock():
        yield


@pytest.fixture(scope="session")
def postgres_url() -> str:
    """The URL of this worker's database, for a role with all permissions."""
    return os.environ["DATABASE_URL"]


@pytest.fixture(scope="session")
def valkey_url() -> str:
    """The URL of this worker's database in the shared Valkey."""
    return os.environ["REDIS_URL"]


@pytest.fixture
def settings_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Change environment variables for one test; the typed settings are updated."""
    change = monkeypatch.setenv

    def change_and_read_again(name: str, value: str, prepend: str | None = None) -> None:
        change(name, value, prepend)
        # Immediately, not lazily: threads of the server may read the settings at any time.
        _read_settings_again()

    monkeypatch.setattr(monkeypatch, "setenv", change_and_read_again)
    _read_settings_again()
    yield monkeypatch
    monkeypatch.undo()
    _read_settings_again()


def _read_settings_again() -> None:
    """Replace the cached settings, also if a thread is just storing those from before a change.

    What is cached once is not replaced by a thread that has read the settings earlier.
    """
    from foundation.environment import environment

    current = None
    while current is None or environment() is not current:
        environment.cache_clear()
        try:
            current = environment()
        except ValidationError:
            # A test of what is rejected, or one that changes several variables.
            return


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """A real HTTP server in this process; yields its base URL."""
    from tests.server import running_server

    with running_server() as url:
        yield url


@pytest.fixture
def launcher_directory() -> Iterator[LauncherDirectory]:
    """A data directory in which a test can start a separate Rillbase."""
    with reachable_directory() as directory:
        yield LauncherDirectory(directory)


@pytest.fixture
def own_node(tmp_path: Path, settings_environment: pytest.MonkeyPatch) -> Iterator[OwnNode]:
    """A storage node that only this test uses."""
    node = OwnNode(tmp_path / "node")
    settings_environment.setenv("STORAGE_URL", node.url)
    yield node
    node.close()


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[OwnValkey]:
    """A separate event layer, which the test may kill and empty."""
    own = OwnValkey(tmp_path)
    yield own
    own.close()


@pytest.fixture
async def wire(valkey: OwnValkey) -> AsyncIterator[ValkeyWire]:
    """A connection to the separate event layer."""
    # Settings can be imported only after the environment has been set.
    from foundation.valkey_wire import ValkeyWire

    wire = ValkeyWire(valkey.url, connect_timeout_s=10, answer_timeout_s=10)
    yield wire
    await wire.aclose()


@pytest.fixture(autouse=True)
def _connections_go_back() -> Iterator[None]:
    """Return the test thread's connections to the pool after each test."""
    yield
    from django.db import connections

    connections.close_all()
