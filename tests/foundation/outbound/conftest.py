from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.foundation.outbound.servers import Authority, RawServer


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Return a certificate authority of our own."""
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture
def server() -> Iterator[RawServer]:
    """Return a plain server on 127.0.0.1."""
    with RawServer() as running:
        yield running


@pytest.fixture
def tls_server(authority: Authority, tmp_path: Path) -> Iterator[RawServer]:
    """Return a TLS server whose certificate is for hooks.example."""
    with RawServer(tls=authority.server_context("hooks.example", tmp_path)) as running:
        yield running
