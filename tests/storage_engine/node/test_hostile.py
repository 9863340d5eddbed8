"""Malicious or faulty clients cannot harm others."""

from __future__ import annotations

import random
import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest
import redis

from tests.own_storage_node import TOKEN, OwnStorageNode, ask, token_of
from tests.waiting import wait_until

IDLE = 300


@contextmanager
def connected(node: OwnStorageNode, *, known: bool = True) -> Iterator[socket.socket]:
    """A raw connection, authenticated or not."""
    with socket.create_connection(("127.0.0.1", node.port), timeout=30) as connection:
        if known:
            connection.sendall(f"AUTH {TOKEN}\r\n".encode())
            assert connection.recv(100) == b"+OK\r\n"
        yield connection


def rest(connection: socket.socket) -> bytes:
    """All that comes until the other side ends the connection."""
    received = b""
    try:
        while piece := connection.recv(65_536):
            received += piece
    except ConnectionResetError:
        pass
    return received


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"*99999999\r\n",
        b"*1\r\n$999999999999\r\n",
        b"*1\r\n$-5\r\n",
        b"*1\r\n:1\r\n",
        b"*1\r\n$3\r\nPINGPING",
        b"*" + b"1" * 100,
        b"x" * 70_000,
    ],
)
def test_invalid_requests_end_the_connection_with_a_reason(
    shared_node: OwnStorageNode, request_bytes: bytes
) -> None:
    with connected(shared_node) as connection:
        connection.sendall(request_bytes)
        assert rest(connection).startswith(b"-ERR Protocol error: ")
    with shared_node.client() as client:
        assert client.ping()


def test_unauthenticated_clients_may_not_send_much(shared_node: OwnStorageNode) -> None:
    with connected(shared_node, known=False) as connection:
        connection.sendall(b"*2\r\n$4\r\nAUTH\r\n$9000\r\n")
        assert rest(connection).startswith(b"-ERR Protocol error: ")


def test_half_a_request_delays_no_other_client(shared_node: OwnStorageNode) -> None:
    with ExitStack() as stack:
        for _ in range(50):
            half = stack.enter_context(connected(shared_node))
            half.sendall(b"*2\r\n$4\r\nECHO\r\n$1000000\r\nand then")
        with shared_node.client() as client:
            assert client.ping()


def test_a_request_that_arrives_byte_by_byte_is_answered(shared_node: OwnStorageNode) -> None:
    with connected(shared_node) as connection:
        for byte in b"*2\r\n$4\r\nECHO\r\n$5\r\nhello\r\n":
            connection.sendall(bytes([byte]))
        assert connection.recv(100) == b"$5\r\nhello\r\n"


def test_requests_before_a_half_close_are_answered(shared_node: OwnStorageNode) -> None:
    with connected(shared_node) as connection:
        connection.sendall(b"ECHO one\r\nECHO two\r\n")
        connection.shutdown(socket.SHUT_WR)
        assert rest(connection) == b"$3\r\none\r\n$3\r\ntwo\r\n"


def test_idle_connections_cost_others_nothing_and_more_than_the_limit_are_refused(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    node = OwnStorageNode(tmp_path_factory.mktemp("node"), clients=IDLE)
    try:
        with node.client() as client, ExitStack() as stack:
            assert client.ping()
            wait_until(lambda: node.metric("rillbase_node_clients") == 1, what="others to leave")
            for _ in range(IDLE - 1):
                stack.enter_context(connected(node))
            assert client.ping()
            with connected(node, known=False) as refused:
                assert rest(refused) == b"-ERR max number of clients reached\r\n"
        wait_until(lambda: node.metric("rillbase_node_clients") == 0, what="all to be gone")
        with connected(node):
            pass
    finally:
        node.close()


def test_unauthenticated_connections_make_room_for_authenticated_ones(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    node = OwnStorageNode(tmp_path_factory.mktemp("node"), clients=20)
    try:
        with ExitStack() as stack:
            strangers = [stack.enter_context(connected(node, known=False)) for _ in range(20)]
            wait_until(lambda: node.metric("rillbase_node_clients") >= 20, what="all to be there")
            with node.client() as client:
                assert client.ping()
            wait_until(
                lambda: len(select.select(strangers, [], [], 0)[0]) == 1,
                what="one stranger to be sent away",
            )
            assert node.metric("rillbase_node_evicted_strangers_total") >= 1
    finally:
        node.close()


@pytest.mark.long
def test_unauthenticated_connections_are_closed_after_a_while(
    shared_node: OwnStorageNode,
) -> None:
    with connected(shared_node, known=False) as silent, connected(shared_node) as forgetful:
        forgetful.sendall(b"RESET\r\n")
        assert forgetful.recv(100) == b"+RESET\r\n"
        assert rest(silent) == b""
        assert rest(forgetful) == b""
    assert shared_node.metric("rillbase_node_late_strangers_total") >= 2


def test_requests_that_never_end_take_no_more_memory_than_they_may(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    node = OwnStorageNode(tmp_path_factory.mktemp("node"), **{"in-flight-mib": 64})
    try:
        with ExitStack() as stack:
            halves = [stack.enter_context(connected(node)) for _ in range(40)]
            for half in halves:
                half.setblocking(False)
                half.send(b"*2\r\n$4\r\nECHO\r\n$8000000\r\n")

            def has_to_wait() -> bool:
                for half in halves:
                    with suppress(BlockingIOError):
                        half.send(b"x" * 100_000)
                return node.metric("rillbase_node_postponed_reads_total") > 0

            wait_until(has_to_wait, what="the memory to be taken")
            assert node.metric("rillbase_node_in_flight_bytes") < 100_000_000
            with node.client() as client:
                assert client.ping(), "who has little to say is served"
        wait_until(lambda: node.metric("rillbase_node_in_flight_bytes") < 100_000, what="an end")
        with node.client() as client:
            assert ask(client, "ECHO", "y" * 8_000_000) == "y" * 8_000_000
    finally:
        node.close()


#: Requests that are nearly right lie between those that are, and bytes that mean nothing.
SEEDS = range(150)


def _noise(dice: random.Random) -> bytes:
    words = [dice.randbytes(dice.randrange(40)) for _ in range(dice.randrange(6))]
    request = bytearray(b"*%d\r\n" % len(words))
    for word in [dice.choice([b"AUTH", b"HELLO", b"PING", b"RB.PUB", b"INFO"]), *words[1:]]:
        request += b"$%d\r\n%b\r\n" % (len(word), word)
    for _ in range(dice.randrange(4)):
        place = dice.randrange(len(request))
        request[place : place + dice.randrange(3)] = dice.randbytes(dice.randrange(3))
    return bytes(request)


def test_no_input_of_a_client_harms_the_node(shared_node: OwnStorageNode) -> None:
    for seed in SEEDS:
        dice = random.Random(seed)
        with connected(shared_node, known=dice.random() < 0.5) as connection:
            with suppress(OSError):
                for _ in range(dice.randrange(1, 8)):
                    connection.sendall(_noise(dice))
                connection.shutdown(socket.SHUT_WR)
            rest(connection)
    with shared_node.client() as client:
        assert client.ping()


def test_only_listeners_that_do_not_read_are_disconnected(
    shared_node: OwnStorageNode,
) -> None:
    client = shared_node.namespace("slow", protocol=3)
    ask(client, "RB.TOPIC.CREATE", "news")
    sid = ask(client, "RB.SUB", "news", "ID", "1")["subscription"]
    before = shared_node.metric("rillbase_node_slow_readers_total")
    data = '{"text": "' + "x" * 1_000_000 + '"}'
    with connected(shared_node, known=False) as deaf:
        deaf.sendall(_request("HELLO", "3", "AUTH", "slow", token_of("slow")))
        deaf.sendall(_request("RB.SUB.RESUME", sid))
        wait_until(lambda: shared_node.metric("rillbase_node_listeners") >= 1, what="the listener")
        published = 0
        while shared_node.metric("rillbase_node_slow_readers_total") == before:
            ask(client, "RB.PUB", "news", "ID", "1", "DATA", data)
            published += 1
            assert published < 200, "the listener was never given up"
    assert ask(client, "RB.SUB.READ", "COUNT", 1, sid, 0)


def test_a_client_that_does_not_read_responses_is_throttled(
    shared_node: OwnStorageNode,
) -> None:
    client = shared_node.namespace("greedy")
    ask(client, "RB.KV.SET", "large", "x" * 4_000_000)
    before = shared_node.metric("rillbase_node_written_bytes_total")
    with connected(shared_node, known=False) as greedy:
        greedy.sendall(_request("AUTH", "greedy", token_of("greedy")))
        greedy.sendall(_request("RB.KV.GET", "large") * 100)
        assert client.ping()
        written = shared_node.metric("rillbase_node_written_bytes_total") - before
        # Whatever the sockets hold: far less than the 400 MB that were asked for.
        assert written < 100_000_000
        received = 0
        while received < 400_000_000:
            received += len(greedy.recv(1 << 20))


def test_a_killed_client_is_disconnected(shared_node: OwnStorageNode) -> None:
    with shared_node.client() as admin, connected(shared_node) as victim:
        victim.sendall(b"CLIENT ID\r\n")
        number = int(victim.recv(100)[1:])
        assert ask(admin, "CLIENT", "KILL", "ID", number) == 1
        assert rest(victim) == b""
    with redis.Redis(port=shared_node.port, password=TOKEN) as client:
        assert client.ping()


def _request(*words: str) -> bytes:
    parts = [f"*{len(words)}\r\n"] + [f"${len(word)}\r\n{word}\r\n" for word in words]
    return "".join(parts).encode()
