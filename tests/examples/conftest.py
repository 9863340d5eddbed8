"""One Rillbase for all quick starts, started as a user starts it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import chromium, machine
from tests.chromium import Browser
from tests.launcher_command import reachable_directory
from tests.launcher_process import LauncherDirectory


@pytest.fixture(scope="session")
def ready() -> Iterator[dict[str, str]]:
    """What the launcher prints."""
    with reachable_directory() as directory, LauncherDirectory(directory).up() as launched:
        yield launched.ready


@pytest.fixture(scope="session")
def installation(ready: dict[str, str]) -> dict[str, str]:
    """The variables that each page asks the reader to set."""
    return {"RILLBASE_URL": ready["url"], "RILLBASE_KEY": ready["api_key"]}


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium.running(machine.chromium()) as browser:
        yield browser
