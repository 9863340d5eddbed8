"""The event layer behind TLS."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest

from foundation.valkey_sockets import ValkeySockets
from foundation.valkey_wire import ValkeyWire
from realtime.events.layer import SOURCE, GridLayer
from rillbase_native import GridNode
from tests.own_valkey import OwnValkey
from tests.tls_proxy import make_certificate, tls_in_front_of
from tests.waiting import until


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    return make_certificate(tmp_path)


@pytest.fixture
def by_tls(valkey: OwnValkey, certificate: tuple[Path, Path]) -> Iterator[str]:
    """The event layer's URL, without the certificate authority."""
    port = urlsplit(valkey.url).port
    assert port is not None
    with tls_in_front_of(port, *certificate) as port:
        yield f"rediss://127.0.0.1:{port}/0"


def trusting(url: str, certificate: tuple[Path, Path]) -> str:
    return f"{url}?ssl_ca_certs={quote(str(certificate[0]), safe='')}"


def no_documents(*_: object) -> Iterator[str | bytes]:
    """A snapshot, and an empty copy in PostgreSQL's binary form."""
    yield "5:5:"
    yield b"PGCOPY\n\xff\r\n\0" + bytes(8) + b"\xff\xff"


def node(url: str) -> GridNode:
    return GridNode(
        url=url,
        prefix="{rillbase}:events:1",
        epoch=1,
        query_partition=0,
        write_partition=0,
        write_partitions=1,
        node="filter:0:0",
        holder="test",
        function=SOURCE.read_bytes(),
        documents=no_documents,
    )


async def test_a_node_watches_over_tls(
    grid: GridLayer, by_tls: str, certificate: tuple[Path, Path]
) -> None:
    watching = node(trusting(by_tls, certificate))
    threading.Thread(target=watching.run, args=(os.getppid(),), daemon=True).start()
    try:
        await until(lambda: '"running"' in watching.report(), "the node to watch")
        _, held = await grid.leases(["filter:0:0"])
        assert held["filter:0:0"].holder.startswith("test")
    finally:
        watching.stop()


async def test_a_node_rejects_a_server_without_a_trusted_certificate(
    grid: GridLayer, by_tls: str
) -> None:
    lost = node(by_tls)
    threading.Thread(target=lost.run, args=(os.getppid(),), daemon=True).start()
    try:
        await until(lambda: "certificate" in lost.report(), "the node to say why it waits")
        _, held = await grid.leases(["filter:0:0"])
        assert held == {}
    finally:
        lost.stop()


async def test_servers_speak_tls_too(by_tls: str, certificate: tuple[Path, Path]) -> None:
    url = trusting(by_tls, certificate)
    wire = ValkeyWire(url, connect_timeout_s=10, answer_timeout_s=10)
    sockets = ValkeySockets(url, connect_timeout_s=10, answer_timeout_s=10)
    try:
        await wire.call("SET", "key", b"x" * 100_000)
        result = await asyncio.to_thread(sockets.call, "STRLEN", "key")
        assert result == 100_000
    finally:
        await wire.aclose()
        sockets.close()
