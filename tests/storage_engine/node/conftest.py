"""One storage node for harmless tests, and a separate one for each test that disrupts it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.own_storage_node import OwnStorageNode


@pytest.fixture(scope="session")
def shared_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnStorageNode]:
    node = OwnStorageNode(tmp_path_factory.mktemp("shared-node"))
    yield node
    node.close()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[OwnStorageNode]:
    own = OwnStorageNode(tmp_path)
    yield own
    own.close()
