"""What well-behaved clients rely on."""

from __future__ import annotations

import pytest

from tests.rillbase_server.transport.raw import ends, get, read_response
from tests.rillbase_server.transport.serving import Echo, serving


def test_pipelined_requests_are_answered_in_their_order() -> None:
    echo = Echo()
    with serving(echo) as served, served.connect() as client:
        posts = (
            b"POST /chunked HTTP/1.1\r\nHost: l\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"3\r\nabc\r\n0\r\n\r\n"
            b"POST /sized HTTP/1.1\r\nHost: l\r\nContent-Length: 4\r\n\r\nabcd"
        )
        client.sendall((get("/a") + posts + get("/b")) * 200)
        behind = b""
        for _ in range(200):
            for expected in (b"/a 0", b"/chunked 3", b"/sized 4", b"/b 0"):
                answer, behind = read_response(client, behind)
                assert answer.body == expected
    assert len(echo.requests) == 800


def test_one_request_is_processed_at_a_time_and_the_next_is_not_parsed() -> None:
    echo = Echo(large=b"x" * 8_000_000)
    with serving(echo) as served, served.connect() as client:
        client.sendall(get("/large") + get("/next") * 1000)
        answer, behind = read_response(client)
        assert len(answer.body) == 8_000_000
        for _ in range(1000):
            answer, behind = read_response(client, behind)
            assert answer.body == b"/next 0"


def test_a_client_that_waits_for_100_continue_gets_it() -> None:
    with serving(Echo()) as served, served.connect() as client:
        client.sendall(
            b"POST /up HTTP/1.1\r\nHost: l\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"
        )
        interim, _ = read_response(client)
        assert interim.status == 100
        client.sendall(b"abc")
        assert read_response(client)[0].body == b"/up 3"


def test_requests_of_http_1_0_or_with_connection_close_end_the_connection() -> None:
    for request in (b"GET / HTTP/1.0\r\nHost: l\r\n\r\n", get("/", "Connection: close")):
        with serving(Echo()) as served, served.connect() as client:
            client.sendall(request)
            assert read_response(client)[0].status == 200
            assert ends(client)


def test_a_request_in_single_bytes_is_a_request() -> None:
    with serving(Echo()) as served, served.connect() as client:
        for byte in b"POST /b HTTP/1.1\r\nHost: l\r\nTransfer-Encoding: chunked\r\n\r\n":
            client.sendall(bytes([byte]))
        for byte in b"a;x=y\r\n0123456789\r\n0\r\nT: t\r\n\r\n":
            client.sendall(bytes([byte]))
        assert read_response(client)[0].body == b"/b 10"


def test_the_host_of_an_absolute_address_counts() -> None:
    echo = Echo()
    with serving(echo) as served, served.connect() as client:
        client.sendall(b"GET http://localhost:80/x HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        assert read_response(client)[0].body == b"/x 0"
    assert [value for name, value in echo.headers[0] if name == b"host"] == [b"localhost:80"]


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/1.1\nHost: l\n\n",
        b"GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"GET / HTTP/1.1\r\n folded: x\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\n\r\n",
    ],
    ids=["TLS", "bare LF", "two framings", "two lengths", "a folded header", "no ASCII"],
)
def test_invalid_requests_get_400(request_bytes: bytes) -> None:
    with serving(Echo()) as served, served.connect() as client:
        client.sendall(request_bytes)
        answer, _ = read_response(client)
        assert answer.status == 400
        assert b'"malformed_request"' in answer.body
        assert ends(client)
