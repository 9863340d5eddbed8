from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from foundation.limits import Limiter
from tests.own_valkey import OwnValkey


@pytest.fixture
def own_valkey(tmp_path: Path) -> Iterator[OwnValkey]:
    """Return a server that the test may kill."""
    server = OwnValkey(tmp_path)
    yield server
    server.close()


@pytest.fixture(scope="module")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnValkey]:
    """Return a server that the module's tests share and leave alone."""
    server = OwnValkey(tmp_path_factory.mktemp("valkey"))
    yield server
    server.close()


@pytest.fixture(scope="module")
def patient_limiter(valkey: OwnValkey) -> Iterator[Limiter]:
    """Return a limiter that never falls back because the machine is busy."""
    limiter = Limiter(valkey.url, answer_timeout_s=10, connect_timeout_s=10)
    yield limiter
    assert limiter.shared
    limiter.close()
