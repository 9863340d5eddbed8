"""A second PostgreSQL, which belongs to a customer, and the process that follows its tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.aggregates.background_service import running
from tests.launcher_command import reachable_directory

if TYPE_CHECKING:
    from rillbase_server.launcher.embedded import EmbeddedPostgres
    from tests.sources.upstream import Database


@pytest.fixture(scope="session")
def their_server() -> Iterator[EmbeddedPostgres]:
    # Settings can be imported only after the environment has been set.
    from tests.sources.upstream import running_server

    with reachable_directory() as directory, running_server(Path(directory)) as server:
        yield server


@pytest.fixture
def database(their_server: EmbeddedPostgres) -> Iterator[Database]:
    from tests.sources.upstream import database

    with database(their_server) as tenant_database:
        yield tenant_database


@pytest.fixture(scope="module")
def following(server: str) -> Iterator[None]:
    """The following process, in a separate thread."""
    from sources.following import follower, idle, service, stream

    with pytest.MonkeyPatch.context() as quicker:
        # How often it checks whether there is something to do; what it does then does not change.
        quicker.setattr(service, "RELOAD_S", 0.05)
        quicker.setattr(stream, "WATCH_S", 0.2)
        quicker.setattr(idle, "CHECK_S", 0.2)
        quicker.setattr(follower, "HALTED_S", 0.2)
        with running(service.FollowerService):
            yield
