"""Whatever a WebSocket client negotiates and sends, it receives the documented close code, the
server logs no failure, and nothing of it stays in memory.
"""

from __future__ import annotations

import itertools
import json
import logging
import random
import socket
import zlib
from urllib.parse import urlsplit

import pytest

from rillbase_server.transport.tables import _tables
from tests.contract.contract_resources import ContractResources, contract_resources
from tests.rillbase_server.transport.hostile_frames import (
    CLOSE,
    MESSAGE_LIMIT,
    PONG,
    SENTINEL,
    Client,
    Compression,
    Conversation,
    accepted,
    offer,
)
from tests.rillbase_server.transport.raw import KEY, get, read_response, send_all
from tests.waiting import wait_until

FEW, MANY = range(120), range(120, 2_500)
#: Where WebSockets are, and the subprotocol that each wants.
PATHS = {"/v1/realtime": "rillbase.v1", "/graphql": "graphql-transport-ws"}
RESET = "a reset"
#: Codes with which products close a connection because of a message's content;
#: `docs/guide/websocket.md` has them.
OF_MESSAGES = {1008, 4400, 4401, 4403, 4409, 4429}


@pytest.fixture(scope="module")
def resources(server: str) -> ContractResources:
    return contract_resources(server)


class Listener:
    """Reads the server's frames, and fails on invalid ones."""

    def __init__(
        self, connection: socket.socket, compression: Compression | None, behind: bytes
    ) -> None:
        self._connection = connection
        self._compression = compression
        self._data = bytearray(behind)
        self._decoder: zlib._Decompress | None = None
        self._is_over = False

    def outcome(self, sentinel: bytes = SENTINEL) -> int | None:
        """Return the close code, or None once the sentinel was answered."""
        while True:
            opcode, payload = self.frame()
            if opcode == CLOSE:
                payload[2:].decode()
                return int.from_bytes(payload[:2], "big")
            if opcode == PONG and payload == sentinel:
                return None

    def frame(self) -> tuple[int, bytes]:
        self._need(2)
        first, size, begin = self._data[0], self._data[1], 2
        assert first & 0xB0 == 0x80, "a fragment, or an unknown extension"
        assert size < 128, "a server masks nothing"
        if size >= 126:
            begin = 4 if size == 126 else 10
            self._need(begin)
            size = int.from_bytes(self._data[2:begin], "big")
        self._need(begin + size)
        payload = bytes(self._data[begin : begin + size])
        del self._data[: begin + size]
        if first & 0x40:
            payload = self._inflated(payload)
        return first & 0x0F, payload

    def _inflated(self, payload: bytes) -> bytes:
        assert self._compression is not None, "compressed, and not negotiated"
        if self._decoder is None or not self._compression.server_keeps_context:
            self._decoder = zlib.decompressobj(-self._compression.server_bits)
        return self._decoder.decompress(payload + b"\x00\x00\xff\xff")

    def _need(self, size: int) -> None:
        while len(self._data) < size:
            piece = self._connection.recv(65536)
            if not piece:
                raise ConnectionError("the server hung up without a word")
            self._data += piece


def greeting(path: str, key: str) -> bytes:
    if path == "/graphql":
        return json.dumps({"type": "connection_init", "payload": {"token": key}}).encode()
    return json.dumps({"type": "hello", "token": key}).encode()


def converse(resources: ContractResources, seed: int) -> str:
    """Run one conversation; return what was wrong with it."""
    rng = random.Random(seed)
    path = rng.choice(list(PATHS))
    offered = offer(rng)
    is_greeted = rng.random() < 0.5
    with socket.create_connection(("127.0.0.1", urlsplit(resources.base).port or 0)) as connection:
        connection.settimeout(30)
        connection.sendall(upgrade(path, offered))
        answer, behind = read_response(connection)
        if answer.status != 101:
            return "" if answer.status == 400 else f"{seed}: {answer.status} for {offered}"
        compression = accepted(offered, answer.headers.get("sec-websocket-extensions"))
        listener = Listener(connection, compression, behind)
        limit = MESSAGE_LIMIT if is_greeted else 8 * 1024
        client = Client(rng, compression, limit=limit)
        if is_greeted:
            connection.sendall(client.send(greeting(path, resources.account.admin_key)))
            listener.frame()
        conversation = client.converse()
        send_cut(rng, connection, bytes(conversation.data))
        return complaint_about(seed, conversation, outcome_of(listener))


def outcome_of(listener: Listener) -> int | str | None:
    try:
        return listener.outcome()
    except ConnectionError:
        return RESET
    except TimeoutError:
        return "nothing"


def complaint_about(seed: int, conversation: Conversation, outcome: int | str | None) -> str:
    if outcome == conversation.code or (conversation.is_heard and outcome in OF_MESSAGES):
        return ""
    if outcome == RESET and conversation.code is not None and conversation.may_be_reset:
        return ""
    data = bytes(conversation.data)
    return f"{seed}: {outcome} instead of {conversation.code} {len(data)} {data[:300]!r}"


def upgrade(path: str, offered: str) -> bytes:
    return get(
        path,
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Key: {KEY}",
        "Sec-WebSocket-Version: 13",
        f"Sec-WebSocket-Protocol: {PATHS[path]}",
        f"Sec-WebSocket-Extensions: {offered}",
    )


def send_cut(rng: random.Random, connection: socket.socket, data: bytes) -> None:
    cuts = sorted(rng.randrange(len(data) + 1) for _ in range(rng.choice((0, 1, 5))))
    for begin, end in itertools.pairwise([0, *cuts, len(data)]):
        if not send_all(connection, data[begin:end]):
            return


def bombard(resources: ContractResources, seeds: range, caplog: pytest.LogCaptureFixture) -> None:
    (table,) = _tables.values()
    with caplog.at_level(logging.WARNING):
        failed = [wrong for seed in seeds if (wrong := converse(resources, seed))]
    assert not failed, "\n".join(failed)
    wait_until(lambda: not table._all, what="all connections to be forgotten")
    assert table.memory.used_bytes == 0
    assert not [record for record in caplog.records if record.exc_info], caplog.text


def test_hostile_frames_are_answered_as_documented(
    resources: ContractResources, caplog: pytest.LogCaptureFixture
) -> None:
    bombard(resources, FEW, caplog)


@pytest.mark.long
def test_hostile_frames_are_answered_as_documented_at_length(
    resources: ContractResources, caplog: pytest.LogCaptureFixture
) -> None:
    bombard(resources, MANY, caplog)
