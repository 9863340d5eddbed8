"""Calls to real servers that behave, misbehave, and pretend to be others."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from collections.abc import Callable, Sequence

import pytest

from foundation.outbound import (
    InvalidResponse,
    OutboundClient,
    ResponseTooLarge,
    TargetRefused,
    TargetTimeout,
    TargetUnreachable,
    TlsFailed,
)
from tests.foundation.outbound.servers import OK, Authority, RawServer, say


def answers(*rounds: Sequence[str]) -> tuple[list[str], Callable[[str, int, float], Sequence[str]]]:
    """Return a resolver that gives a different answer each time, and the list of its queries."""
    resolved_names: list[str] = []

    def resolver(host: str, _port: int, _timeout_s: float) -> Sequence[str]:
        resolved_names.append(host)
        return rounds[min(len(resolved_names), len(rounds)) - 1]

    return resolved_names, resolver


def local(**options: float) -> OutboundClient:
    return OutboundClient(
        allow_loopback=True,
        deadline_s=options.get("deadline_s", 10),
        max_body_bytes=int(options.get("max_body_bytes", 64 * 1024)),
    )


def url(server: RawServer, path: str = "/") -> str:
    return f"http://127.0.0.1:{server.port}{path}"


def test_a_call_delivers_its_body_and_returns_the_answer(server: RawServer) -> None:
    answer = local().request(
        "POST", url(server, "/hook?a=1"), headers={"Webhook-Id": "m1"}, body=b'{"a":1}'
    )
    assert (answer.status, answer.body, answer.headers["x-seen"]) == (200, b"ok", "yes")
    assert answer.successful
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert body == b'{"a":1}'
    assert head.split(b"\r\n") == [
        b"POST /hook?a=1 HTTP/1.1",
        f"Host: 127.0.0.1:{server.port}".encode(),
        b"User-Agent: Rillbase/1",
        b"Accept-Encoding: identity",
        b"Connection: close",
        b"Webhook-Id: m1",
        b"Content-Length: 7",
    ]


def test_the_certificate_and_the_host_header_are_those_of_the_name_in_the_url(
    tls_server: RawServer, authority: Authority
) -> None:
    _, resolver = answers(["127.0.0.1"])
    client = OutboundClient(allow_loopback=True, resolver=resolver, tls=authority.client_context())
    answer = client.request("GET", f"https://hooks.example:{tls_server.port}/")
    assert answer.status == 200
    assert tls_server.server_names == ["hooks.example"]
    assert f"Host: hooks.example:{tls_server.port}".encode() in tls_server.requests[0]


def test_a_certificate_for_another_host_is_refused(
    tls_server: RawServer, authority: Authority
) -> None:
    _, resolver = answers(["127.0.0.1"])
    client = OutboundClient(allow_loopback=True, resolver=resolver, tls=authority.client_context())
    with pytest.raises(TlsFailed, match="not valid"):
        client.request("GET", f"https://other.example:{tls_server.port}/")
    assert tls_server.requests == []


def test_a_certificate_of_an_unknown_authority_is_refused(tls_server: RawServer) -> None:
    _, resolver = answers(["127.0.0.1"])
    client = OutboundClient(allow_loopback=True, resolver=resolver)
    with pytest.raises(TlsFailed, match="not valid"):
        client.request("GET", f"https://hooks.example:{tls_server.port}/")
    assert tls_server.requests == []


def test_a_server_without_tls_is_a_tls_failure(server: RawServer) -> None:
    with pytest.raises(TlsFailed):
        local().request("GET", f"https://127.0.0.1:{server.port}/")


def test_a_name_that_changes_its_address_after_the_check_is_called_at_the_address_checked() -> None:
    with RawServer(address="127.0.0.2") as inner, RawServer() as checked:
        resolved_names, resolver = answers(["127.0.0.1"], ["127.0.0.2"])
        client = OutboundClient(allow_loopback=True, resolver=resolver)
        client.request("GET", f"http://hooks.example:{checked.port}/")
        assert resolved_names == ["hooks.example"]
        assert (len(checked.requests), len(inner.requests)) == (1, 0)


def test_each_call_checks_the_address_again(server: RawServer) -> None:
    _, resolver = answers(["127.0.0.1"], ["169.254.169.254"])
    client = OutboundClient(allow_loopback=True, resolver=resolver)
    client.check(f"http://hooks.example:{server.port}/")
    with pytest.raises(TargetRefused):
        client.request("GET", f"http://hooks.example:{server.port}/")
    assert server.requests == []


def test_the_next_address_is_tried_when_the_first_refuses(server: RawServer) -> None:
    _, resolver = answers(["127.0.0.3", "127.0.0.1"])
    client = OutboundClient(allow_loopback=True, resolver=resolver)
    assert client.request("GET", f"http://hooks.example:{server.port}/").status == 200


def test_a_redirect_is_an_answer_and_is_not_followed(server: RawServer) -> None:
    with RawServer() as elsewhere:
        location = url(elsewhere).encode()
        server.script = say(
            b"HTTP/1.1 302 Found\r\nLocation: " + location + b"\r\nContent-Length: 0\r\n\r\n"
        )
        answer = local().request("GET", url(server))
        assert (answer.status, answer.successful) == (302, False)
        assert elsewhere.requests == []


def test_proxies_of_the_environment_are_not_used(
    server: RawServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RawServer() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, url(proxy))
        assert local().request("GET", url(server)).status == 200
        assert proxy.requests == []


def drip(piece: bytes) -> Callable[[socket.socket, threading.Event], None]:
    def script(connection: socket.socket, over: threading.Event) -> None:
        while not over.wait(0.05):
            connection.sendall(piece)

    return script


HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("opening", "piece"),
    [
        (b"", b"H"),
        (HEAD, b"X-More: 1\r\n"),
        (HEAD + b"Content-Length: 9999\r\n\r\n", b"x"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
    ids=["status", "headers", "body", "chunks", "continue"],
)
def test_a_slowly_sending_server_is_abandoned_at_the_deadline(
    server: RawServer, opening: bytes, piece: bytes
) -> None:
    def script(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(opening)
        drip(piece)(connection, over)

    server.script = script
    begin = time.monotonic()
    with pytest.raises(TargetTimeout):
        local(deadline_s=0.5).request("GET", url(server))
    assert time.monotonic() - begin < 5


def test_a_call_to_a_server_that_never_responds_or_never_finishes_the_handshake_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        for scheme in ("http", "https"):
            with pytest.raises(TargetTimeout):
                local(deadline_s=0.2).request("GET", f"{scheme}://127.0.0.1:{port}/")


def test_a_lookup_of_a_name_times_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answered = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answered.wait(10) and [])
    with pytest.raises(TargetTimeout):
        OutboundClient(deadline_s=0.1).check("https://hooks.example/")
    answered.set()


def test_a_name_that_does_not_exist_is_unreachable() -> None:
    with pytest.raises(TargetUnreachable, match="resolved"):
        OutboundClient().check("https://does-not-exist.invalid/")


def test_a_port_without_a_listener_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(TargetUnreachable, match="refused the connection"):
        local().request("GET", f"http://127.0.0.1:{port}/")


@pytest.mark.parametrize(
    "answer",
    [
        HEAD + b"Content-Length: 5000\r\n\r\n" + b"x" * 5000,
        HEAD + b"\r\n" + b"x" * 5000,
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1388\r\n" + b"x" * 5000 + b"\r\n0\r\n\r\n",
        HEAD + b"X-Long: " + b"x" * 60_000 + b"\r\n\r\n",
        HEAD + b"".join(b"X-%d: %s\r\n" % (i, b"x" * 1000) for i in range(60)) + b"\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 3000,
    ],
    ids=["length", "until close", "chunked", "header", "headers", "continues"],
)
def test_a_response_that_is_too_large_is_aborted(server: RawServer, answer: bytes) -> None:
    server.script = say(answer)
    with pytest.raises(ResponseTooLarge):
        local(max_body_bytes=4999).request("GET", url(server))


def test_an_answer_of_exactly_the_largest_size_is_accepted(server: RawServer) -> None:
    server.script = say(HEAD + b"Content-Length: 5000\r\n\r\n" + b"x" * 5000)
    assert len(local(max_body_bytes=5000).request("GET", url(server)).body) == 5000


@pytest.mark.parametrize(
    "headers",
    [b"Content-Encoding: gzip", b"Content-Encoding: br", b"Transfer-Encoding: gzip, chunked"],
)
def test_a_compressed_answer_is_refused_and_never_unpacked(
    server: RawServer, headers: bytes
) -> None:
    bomb = gzip.compress(b"\0" * 10_000_000)
    server.script = say(HEAD + headers + b"\r\nContent-Length: %d\r\n\r\n" % len(bomb) + bomb)
    with pytest.raises(InvalidResponse):
        local().request("GET", url(server))


@pytest.mark.parametrize(
    "answer",
    [b"SSH-2.0-OpenSSH_9.9\r\n", b"\r\n\r\n", b"HTTP/1.1 abc OK\r\n\r\n"],
    ids=["another protocol", "empty lines", "no status"],
)
def test_an_answer_that_is_not_http_is_invalid(server: RawServer, answer: bytes) -> None:
    server.script = say(answer)
    with pytest.raises(InvalidResponse):
        local().request("GET", url(server))


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        HEAD + b"Content-Length: 10\r\n\r\nhalf",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nha",
    ],
    ids=["nothing", "short", "short chunk"],
)
def test_an_answer_that_is_cut_short_is_unreachable(server: RawServer, answer: bytes) -> None:
    server.script = say(answer)
    with pytest.raises(TargetUnreachable):
        local().request("GET", url(server))


def test_headers_cannot_be_smuggled_into_the_request(server: RawServer) -> None:
    with pytest.raises(ValueError, match="set by the client"):
        local().request("GET", url(server), headers={"host": "inner.example"})
    with pytest.raises(ValueError, match="Invalid header value"):
        local().request("GET", url(server), headers={"X-A": "1\r\nX-B: 2"})
    assert b"X-B" not in b"".join(server.requests)


def test_a_body_larger_than_the_sockets_buffers_arrives_whole(server: RawServer) -> None:
    body = bytes(range(256)) * 20_000
    server.script = say(OK)
    local().request("POST", url(server), body=body)
    assert server.requests[0].endswith(body)


def test_a_body_that_follows_the_head_of_a_closing_response_is_read(server: RawServer) -> None:
    """Head and body arrive apart, and the head says that the connection ends with the answer."""

    def script(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n")
        over.wait(0.05)
        connection.sendall(b"ok")

    server.script = script
    assert local().request("GET", url(server)).body == b"ok"
