"""A place for a Rillbase of the test's own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.launched import Place
from tests.launcher_command import reachable_directory


@pytest.fixture
def place() -> Iterator[Place]:
    with reachable_directory() as directory:
        yield Place(directory)
