"""What a WebSocket may send before authentication, and the memory of all WebSockets."""

from __future__ import annotations

import json
import socket

import pytest

from rillbase_server.transport.transport_limits import WORK_FACTOR, TransportLimits
from rillbase_server.transport.websocket_frames import SMALL_FRAMES_AT_ONCE, SMALL_FRAMES_PER_S
from tests.rillbase_server.transport.raw import (
    close_code,
    deflated,
    frame,
    get,
    read_frame,
    read_response,
    send_all,
    upgrade,
)
from tests.rillbase_server.transport.serving import Echo, ServerUnderTest, serving
from tests.waiting import wait_until

LIMIT = 8 * 1024
MIB = 1024 * 1024
KNOWN = "Authorization: Bearer x"


def opened(served: ServerUnderTest, path: str = "/", *headers: str) -> socket.socket:
    client = served.connect()
    client.sendall(upgrade(path, *headers))
    assert read_response(client)[0].status == 101
    return client


@pytest.mark.parametrize(
    "message",
    [
        frame(b"a" * (LIMIT + 1)),
        frame(deflated(b"a" * (LIMIT + 1)), deflated=True),
        frame(deflated(b"a" * 31 * MIB), deflated=True),
        frame(deflated(b"a" * 31 * MIB)[:20_000], deflated=True, fin=False),
        frame(b"a" * LIMIT, fin=False) + frame(b"a", 0),
        frame(b"\x00\x00\x00\xff\xff" * 1_600, deflated=True, fin=False)
        + frame(b"\x00\x00\x00\xff\xff" * 1_600, 0, fin=False) * 2,
        frame(b"a" * 31 * MIB)[:14],
    ],
    ids=["plain", "deflated", "a bomb", "half a bomb", "fragments", "empty blocks", "a head alone"],
)
def test_a_large_message_is_refused_before_authentication(message: bytes) -> None:
    with serving(Echo()) as served, opened(served) as client:
        send_all(client, message)
        assert close_code(client) == 1009


@pytest.mark.parametrize(
    "message",
    [
        frame(b"a" * LIMIT),
        frame(deflated(b"a" * LIMIT), deflated=True),
        frame(deflated(b"a" * LIMIT)[:5], deflated=True, fin=False)
        + frame(b"", 9)
        + frame(deflated(b"a" * LIMIT)[5:], 0),
    ],
    ids=["plain", "deflated", "fragments"],
)
def test_a_message_of_exactly_the_maximum_size_is_accepted(message: bytes) -> None:
    with serving(Echo()) as served, opened(served) as client:
        client.sendall(message)
        opcode, payload, behind = read_frame(client)
        if opcode == 10:
            opcode, payload, _ = read_frame(client, behind)
        assert payload == str(LIMIT).encode()


def test_after_authentication_messages_have_up_to_32_mib() -> None:
    with serving(Echo()) as served, opened(served) as client:
        client.sendall(frame(b"hello") + frame(deflated(b"a" * 32 * MIB), deflated=True))
        _, _, behind = read_frame(client)
        _, payload, _ = read_frame(client, behind)
        assert payload == str(32 * MIB).encode()
        send_all(client, frame(deflated(b"a" * (32 * MIB + 1)), deflated=True))
        assert close_code(client) == 1009


def test_credentials_in_the_handshake_make_a_large_message_wait_until_they_are_verified() -> None:
    echo = Echo()
    with serving(echo) as served, opened(served, "/slow", KNOWN) as client:
        client.sendall(frame(deflated(b"a" * MIB), deflated=True) + frame(b"a" * 9000))
        client.settimeout(0.3)
        with pytest.raises(TimeoutError):
            client.recv(1)
        client.settimeout(30)
        echo.may_verify.set()
        _, payload, behind = read_frame(client)
        assert payload == str(MIB).encode()
        assert read_frame(client, behind)[1] == b"9000"


def test_credentials_of_an_earlier_request_on_the_connection_do_not_count() -> None:
    with serving(Echo()) as served, served.connect() as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: l\r\n" + KNOWN.encode() + b"\r\n\r\n")
        _, behind = read_response(client)
        client.sendall(upgrade())
        assert read_response(client, behind)[0].status == 101
        send_all(client, frame(b"a" * (LIMIT + 1)))
        assert close_code(client) == 1009


def test_nothing_is_inflated_after_a_message_that_has_not_been_accepted() -> None:
    echo = Echo()
    with serving(echo) as served, opened(served, "/held", KNOWN) as client:
        client.sendall(frame(deflated(b"a" * MIB), deflated=True) * 100)
        assert read_frame(client)[1] == str(MIB).encode()
        assert served.table.memory.used_bytes <= (1 + WORK_FACTOR) * MIB
        echo.may_read.set()
        behind = b""
        for _ in range(99):
            _, payload, behind = read_frame(client, behind)
            assert payload == str(MIB).encode()
        wait_until(lambda: served.table.memory.used_bytes == 0, what="the memory")


def test_messages_of_all_connections_share_a_memory_and_wait_for_it() -> None:
    echo = Echo()
    bounds = TransportLimits(message_memory_bytes=4 * MIB)
    with serving(echo, bounds) as served:
        clients = [opened(served, "/held", KNOWN) for _ in range(8)]
        for client in clients:
            client.sendall(frame(deflated(b"a" * 3 * MIB), deflated=True))
        wait_until(lambda: served.table.memory.used_bytes >= 4 * MIB, what="a full memory")
        # The oldest alone may go beyond.
        assert served.table.memory.used_bytes <= 4 * MIB + (1 + WORK_FACTOR) * 3 * MIB
        echo.may_read.set()
        for client in clients:
            assert read_frame(client)[1] == str(3 * MIB).encode()
        for client in clients:
            client.close()
        wait_until(lambda: served.table.memory.used_bytes == 0, what="the memory")


def test_a_client_that_disconnects_in_a_message_releases_its_memory() -> None:
    with serving(Echo()) as served:
        with opened(served, "/", KNOWN) as client:
            client.sendall(frame(b"a" * 2 * MIB)[: MIB + 100])
            wait_until(lambda: served.table.memory.used_bytes >= MIB // 2, what="a claim")
        wait_until(lambda: served.table.memory.used_bytes == 0, what="the memory")
        wait_until(lambda: served.open_connections == 0, what="the connection to be forgotten")


def test_a_message_that_arrives_too_slowly_ends_the_connection() -> None:
    bounds = TransportLimits(transfer_window_s=0.5, min_bytes_per_s=2000)
    with serving(Echo(), bounds) as served, opened(served, "/", KNOWN) as client:
        client.sendall(frame(b"a" * 5000)[:100])
        assert close_code(client) == 1008


def test_a_handshake_and_messages_in_one_packet_are_both_read() -> None:
    with serving(Echo()) as served, served.connect() as client:
        client.sendall(upgrade() + frame(b"early") + frame(b"bird!!"))
        _, behind = read_response(client)
        _, first, behind = read_frame(client, behind)
        assert (first, read_frame(client, behind)[1]) == (b"5", b"6")


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (frame(b"\xff"), 1007),
        (frame("é".encode()[:1], fin=False) + frame(b"x", 0), 1007),
        (frame(b"x", 0), 1002),
        (frame(b"x", fin=False) + frame(b"x"), 1002),
        (frame(b"x" * 126, 9), 1002),
        (frame(b"\x03", 8), 1002),
        (frame(b"\x03\xed", 8), 1002),
        (frame(b"\x03\xe8\xff", 8), 1007),
        (frame(b"x", 9, fin=False), 1002),
        (frame(b"x", 3), 1002),
        (b"\x81\x01x", 1002),
        (frame(b"not deflated at all", deflated=True), 1002),
        (frame(b"\x03\x00" + b"junk", deflated=True), 1002),
    ],
)
def test_a_broken_protocol_closes_the_connection(message: bytes, code: int) -> None:
    with serving(Echo()) as served, opened(served) as client:
        send_all(client, message)
        assert close_code(client) == code


def until_pong(client: socket.socket, behind: bytes) -> bytes:
    """Read up to the answer to a ping with a question mark; return what came behind it."""
    while True:
        _, payload, behind = read_frame(client, behind)
        if payload == b"?":
            return behind


@pytest.mark.parametrize("small", [frame(b"", 9), frame(b"", 10), frame(b"x", 0, fin=False)])
def test_a_flood_of_small_frames_ends_the_connection_and_a_few_do_not(small: bytes) -> None:
    with serving(Echo()) as served, opened(served, "/", KNOWN) as client:
        behind = b""
        client.sendall(frame(b"", fin=False))
        for _ in range(3):
            client.sendall(small * SMALL_FRAMES_PER_S + frame(b"?", 9))
            behind = until_pong(client, behind)
        send_all(client, small * 10 * SMALL_FRAMES_AT_ONCE)
        assert close_code(client, behind) == 1008


def test_a_client_that_keeps_sending_still_gets_the_close_reason() -> None:
    with serving(Echo()) as served, served.connect(receive_buffer=4096) as client:
        client.sendall(upgrade())
        _, behind = read_response(client)
        # Pongs that the client has not read yet are in front of the close frame.
        client.sendall(frame(b"x" * 125, 9) * 250 + frame(b"x", 3))
        wait_until(lambda: not served.server.server_state.tasks, what="the application's end")
        client.sendall(b"more" * 25_000)
        assert close_code(client, behind) == 1002


def test_a_compressed_message_may_end_with_a_last_block() -> None:
    """As RFC 7692, 7.2.3.4 has it: "Hello" in a block that is marked as the last."""
    last = bytes.fromhex("f348cdc9c90700") + b"\x00"
    with serving(Echo()) as served, opened(served) as client:
        for _ in range(2):
            client.sendall(frame(last, deflated=True))
            assert read_frame(client)[1] == b"5"


def test_a_response_that_the_client_does_not_read_counts_after_the_upgrade_behind_it() -> None:
    bounds = TransportLimits(response_memory_bytes=MIB)
    echo = Echo(large=bytes(16 * MIB))
    with serving(echo, bounds) as served, served.connect(receive_buffer=4096) as client:
        client.sendall(get("/large") + upgrade())
        wait_until(lambda: bool(echo.requests), what="the response")
        wait_until(lambda: served.open_connections == 0, what="the connection to be ended")


def test_a_rejected_handshake_gets_a_problem_document() -> None:
    with serving(Echo()) as served, served.connect() as client:
        client.sendall(get("/", "Connection: Upgrade", "Upgrade: websocket"))
        response, _ = read_response(client)
    assert response.headers["content-type"] == "application/problem+json"
    problem = json.loads(response.body)
    assert (response.status, problem["status"], problem["code"]) == (400, 400, "malformed_request")
    assert "Sec-WebSocket-Key" in problem["detail"]
    assert problem["request_id"] == response.headers["x-request-id"]
