"""One Rillbase for all quick starts, started as a user starts it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.launched import Place
from tests.launcher_command import reachable_directory


@pytest.fixture(scope="session")
def installation() -> Iterator[dict[str, str]]:
    """The variables that each page asks the reader to set."""
    with reachable_directory() as directory, Place(directory).up() as launched:
        ready = launched.ready
        yield {"RILLBASE_URL": ready["url"], "RILLBASE_KEY": ready["api_key"]}
