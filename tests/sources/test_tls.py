"""Connections to sources are encrypted as their URLs demand."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from tests.sources.hostile import GREETING, LOGIN, Client, hostile_server
from tests.tls_proxy import make_certificate


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_certificate(tmp_path_factory.mktemp("tls"))


async def is_encrypted(mode: str, tls: ssl.SSLContext | None, host: str = "127.0.0.1") -> bool:
    """Connect; tell whether the server got an encrypted connection."""
    from sources.connection import conninfo, parse_target
    from sources.upstream.session import session

    encrypted = []

    def live(client: Client) -> None:
        client.start()
        encrypted.append(client.is_encrypted)
        client.send(LOGIN, GREETING)
        client.hang()

    with hostile_server(live, tls) as url:
        verified_url = url.replace("disable", mode).replace("127.0.0.1", host)
        async with session(conninfo(parse_target(verified_url), ["127.0.0.1"])):
            pass
    return encrypted[0]


def offered(certificate: tuple[Path, Path]) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)
    return context


@pytest.mark.parametrize("mode", ["disable", "prefer", "require"])
async def test_a_connection_is_encrypted_unless_that_is_turned_off(
    certificate: tuple[Path, Path], mode: str
) -> None:
    assert await is_encrypted(mode, offered(certificate)) is (mode != "disable")


@pytest.mark.parametrize("mode", ["verify-ca", "verify-full"])
async def test_a_server_is_verified_as_far_as_its_url_demands(
    certificate: tuple[Path, Path], mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls = offered(certificate)
    with pytest.raises(ssl.SSLCertVerificationError):
        await is_encrypted(mode, tls)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    assert await is_encrypted(mode, tls)
    if mode == "verify-ca":
        assert await is_encrypted(mode, tls, "localhost")
    else:
        with pytest.raises(ssl.SSLCertVerificationError):
            await is_encrypted(mode, tls, "localhost")


@pytest.mark.parametrize("mode", ["disable", "prefer", "require", "verify-full"])
async def test_a_server_without_tls_is_used_only_where_tls_is_not_demanded(mode: str) -> None:
    if mode in ("disable", "prefer"):
        assert not await is_encrypted(mode, None)
    else:
        with pytest.raises(ConnectionError):
            await is_encrypted(mode, None)
