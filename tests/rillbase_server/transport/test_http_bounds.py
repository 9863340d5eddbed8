"""What a client may send before its request is complete, and for how long."""

from __future__ import annotations

import contextlib
import json
import socket
from ipaddress import ip_network

import pytest

from foundation.metrics import CONNECTIONS_CLOSED
from rillbase_server.transport.transport_limits import TransportLimits
from tests.rillbase_server.transport.raw import ends, get, read_response, send_all
from tests.rillbase_server.transport.serving import Echo, serving
from tests.waiting import wait_until

SMALL = TransportLimits(header_bytes=8192, headers=20)
FAST = TransportLimits(header_timeout_s=0.5, transfer_window_s=0.5, min_bytes_per_s=2000)


@pytest.fixture
def frequent_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections are checked often, so that a limit takes effect soon after its time."""
    monkeypatch.setattr("rillbase_server.transport.connection_table.CHECK_INTERVAL_S", 0.1)


def closed_count(reason: str) -> float:
    return float(CONNECTIONS_CLOSED.labels(reason)._value.get())


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 9000,
        b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"a" * 9000,
        b"GET /" + b"a" * 9000,
        b"\r\n" * 5000,
        get("/", *(f"X{i}: y" for i in range(20))),
        get("/", *(f"X{i}: y" for i in range(21)))[:-4],
    ],
    ids=["a value", "a name", "an address", "empty lines", "a complete head", "many headers"],
)
def test_a_head_beyond_its_bounds_is_answered_431_before_it_is_complete(head: bytes) -> None:
    with serving(Echo(), SMALL) as served, served.connect() as client:
        client.sendall(head)
        answer, _ = read_response(client)
        assert answer.status == 431
        assert json.loads(answer.body)["code"] == "headers_too_large"
        assert answer.headers["connection"] == "close"
        assert ends(client)


def test_an_endless_header_is_disconnected_and_others_are_served() -> None:
    with serving(Echo()) as served, served.connect() as hostile, served.connect() as other:
        hostile.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ")
        pieces = 0
        while pieces < 1000 and send_all(hostile, b"a" * 65536):
            pieces += 1
        assert pieces < 1000
        other.sendall(get("/other"))
        assert read_response(other)[0].body == b"/other 0"


def test_a_head_of_exactly_the_bound_is_served_however_it_is_cut() -> None:
    head = get("/", "X: ")
    head = get("/", "X: " + "a" * (SMALL.header_bytes - len(head)))
    assert len(head) == SMALL.header_bytes
    with serving(Echo(), SMALL) as served, served.connect() as client:
        for cut in (1, len(head) - 1, len(head) - 2, len(head) - 3, len(head)):
            client.sendall(head[:cut])
            client.sendall(head[cut:])
            assert read_response(client)[0].status == 200


CHUNKED = b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "rest",
    [
        b"1;" + b"x" * 9000,
        b"1;x=y\r\na\r\n" * 20_000,
        b"1\r\na\r\n0\r\nX: " + b"a" * 9000,
        b"1\r\na\r\n0\r\n" + b"".join(b"X%d: y\r\n" % i for i in range(22)),
    ],
    ids=["an extension", "many extensions", "a trailer", "many trailers"],
)
def test_chunk_extensions_and_trailers_beyond_the_bound_are_refused(rest: bytes) -> None:
    bounds = TransportLimits(header_bytes=8192, headers=20)
    rest = rest.replace(b"x=y", b"x=" + b"y" * 30)
    with serving(Echo(), bounds) as served, served.connect() as client:
        send_all(client, CHUNKED + rest)
        assert read_response(client)[0].status == 431


def test_many_small_chunks_and_a_few_trailers_are_accepted() -> None:
    echo = Echo()
    body = b"1\r\na\r\n" * 20_000 + b"0\r\nDigest: x\r\nHost: evil.example\r\n\r\n"
    with serving(echo, SMALL) as served, served.connect() as client:
        client.sendall(CHUNKED + body)
        assert read_response(client)[0].body == b"/ 20000"
    # A trailer never becomes a header.
    assert [value for name, value in echo.headers[0] if name == b"host"] == [b"localhost"]
    assert b"digest" not in dict(echo.headers[0])


@pytest.mark.usefixtures("frequent_checks")
@pytest.mark.parametrize(
    ("sent", "status", "reason"),
    [
        (b"GET / HTTP/1.1\r\nHost", 408, "header_timeout"),
        (b"", None, "no_request"),
        (
            b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999999\r\n\r\nabc",
            408,
            "body_too_slow",
        ),
        (CHUNKED + b"1\r\n", 408, "body_too_slow"),
    ],
    ids=["half a head", "nothing", "a slow body", "a slow chunk"],
)
def test_a_request_that_does_not_arrive_in_time_ends_the_connection(
    sent: bytes, status: int | None, reason: str
) -> None:
    before = closed_count(reason)
    with serving(Echo(), FAST) as served, served.connect() as client:
        client.sendall(sent)
        if status is not None:
            assert read_response(client)[0].status == status
        assert ends(client)
        wait_until(lambda: served.open_connections == 0, what="the connection to be forgotten")
    assert closed_count(reason) == before + 1


def test_a_body_that_keeps_the_rate_may_take_longer_than_any_window() -> None:
    with serving(Echo(), FAST) as served, served.connect() as client:
        n_bytes, piece = 60_000, 1000
        client.sendall(b"POST /up HTTP/1.1\r\nHost: l\r\nContent-Length: %d\r\n\r\n" % n_bytes)
        client.settimeout(0.03)
        for _ in range(n_bytes // piece - 1):
            client.sendall(b"x" * piece)
            with pytest.raises(TimeoutError):
                client.recv(1)
        client.settimeout(30)
        client.sendall(b"x" * piece)
        assert read_response(client)[0].body == b"/up 60000"


def test_a_client_that_reads_no_response_is_disconnected() -> None:
    before = closed_count("response_too_slow")
    echo = Echo(large=b"x" * 20_000_000)
    with serving(echo, FAST) as served, served.connect(receive_buffer=4096) as client:
        client.sendall(get("/large"))
        wait_until(
            lambda: closed_count("response_too_slow") > before, what="the client to be cut off"
        )
        wait_until(lambda: served.open_connections == 0, what="the connection to be forgotten")


def test_unread_responses_share_a_memory_and_the_slowest_client_is_disconnected() -> None:
    before = closed_count("response_memory")
    echo = Echo(large=b"x" * 20_000_000)
    with (
        serving(echo, TransportLimits(response_memory_bytes=30_000_000)) as served,
        served.connect(receive_buffer=4096) as slowest,
        served.connect(receive_buffer=4096) as slow,
        served.connect() as quick,
    ):
        slowest.sendall(get("/large"))
        wait_until(lambda: len(echo.requests) == 1, what="the first request")
        slow.sendall(get("/large"))
        wait_until(
            lambda: closed_count("response_memory") == before + 1, what="a client to be cut off"
        )
        assert ends(slowest)
        quick.sendall(get("/large"))
        assert read_response(quick)[0].body == echo.large
        # It has been slow for long enough: reading 20 MB by 4 KiB takes most of a minute.
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1_000_000)
        assert read_response(slow)[0].body == echo.large
        assert closed_count("response_memory") == before + 1


def test_beyond_the_cap_the_oldest_unauthenticated_connection_is_closed() -> None:
    bounds = TransportLimits(connections=3)
    with serving(Echo(), bounds) as served:
        known, old, new = (served.connect() for _ in range(3))
        known.sendall(get("/", "Authorization: Bearer x"))
        assert read_response(known)[0].status == 200
        for idle in (old, new):
            idle.sendall(b"GET / HTTP/1.1\r\n")
        wait_until(lambda: served.open_connections == 3, what="all three")
        with served.connect() as last:
            last.sendall(get("/last"))
            assert read_response(last)[0].status == 200
            assert ends(old)
            known.sendall(get("/again"))
            assert read_response(known)[0].status == 200
            new.sendall(b"Host: localhost\r\n\r\n")
            assert read_response(new)[0].status == 200
        for client in (known, old, new):
            client.close()


def test_each_address_has_a_cap_from_which_proxies_are_exempt() -> None:
    for proxies, expected in (((), 2), ((ip_network("127.0.0.0/8"),), 4)):
        bounds = TransportLimits(connections_per_address=2, trusted_proxies=proxies)
        with serving(Echo(), bounds) as served:
            before = closed_count("address_full_evicted")
            clients = [served.connect() for _ in range(4)]
            wait_until(
                lambda evicted=before: (  # type: ignore[misc]
                    served.open_connections + closed_count("address_full_evicted") - evicted == 4
                ),
                what="all to be accepted",
            )
            for client in clients:
                send_all(client, get("/", "Authorization: Bearer x")[:-2])
            survivors = 0
            for client in clients:
                if send_all(client, b"\r\n"):
                    with contextlib.suppress(ConnectionError):
                        survivors += read_response(client)[0].status == 200
                client.close()
            assert survivors == expected
