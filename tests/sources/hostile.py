"""A server that speaks PostgreSQL's protocol well enough to be followed, and then misbehaves."""

from __future__ import annotations

import base64
import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from struct import pack, unpack

Cell = bytes | None
#: Answers a statement itself, or returns false.
Misbehaviour = Callable[["Client", bytes], bool]
#: Handles a connection.
ConnectionHandler = Callable[["Client"], None]

INT4, INT8, BOOL, TEXT, TEXT_ARRAY, OID_ARRAY = 23, 20, 16, 25, 1009, 1016
LSN = b"0/16B3748"


def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + pack("!I", len(body) + 4) + body


def parameter(name: str, value: str) -> bytes:
    return message(b"S", f"{name}\0{value}\0".encode())


def columns(*types: int) -> bytes:
    parts = [b"c\0" + pack("!IHIhih", 0, 0, oid, -1, -1, 0) for oid in types]
    return message(b"T", pack("!H", len(parts)) + b"".join(parts))


def row(*cells: Cell) -> bytes:
    parts = [pack("!i", -1) if c is None else pack("!i", len(c)) + c for c in cells]
    return message(b"D", pack("!H", len(parts)) + b"".join(parts))


def copy_data(content: bytes) -> bytes:
    return message(b"d", content)


def wal(content: bytes) -> bytes:
    """A message of the output plugin."""
    return copy_data(b"w" + pack("!QQq", 0, 0, 0) + content)


DONE = message(b"C", b"SELECT 1\0")
READY = message(b"Z", b"I")
LOGIN = message(b"R", pack("!I", 0))
GREETING = b"".join(
    (
        parameter("server_version", "18.0"),
        parameter("client_encoding", "UTF8"),
        parameter("standard_conforming_strings", "on"),
        message(b"K", pack("!II", 1, 2)),
        READY,
    )
)
#: Results of catalogue queries for one table with an id and a text, by query.
CATALOGUE: dict[bytes, tuple[tuple[int, ...], list[tuple[Cell, ...]]]] = {
    b"server_version_num": ((INT4, TEXT, BOOL), [(b"180000", b"logical", b"f")]),
    b"FROM pg_class c": (
        (INT8, TEXT, TEXT, TEXT, BOOL, BOOL),
        [(b"16384", b"r", b"p", b"d", b"f", b"t")],
    ),
    b"atttypid": (
        (TEXT, INT8, INT4, BOOL),
        [(b"id", b"23", b"-1", b"t"), (b"name", b"25", b"-1", b"f")],
    ),
    b"indisprimary, indisreplident": ((BOOL, BOOL, TEXT_ARRAY), [(b"t", b"f", b"{id}")]),
    b"t.typbasetype": (
        (INT8, TEXT, TEXT, TEXT, INT8, INT8, TEXT),
        [
            (b"23", b"pg_catalog", b"int4", b"b", b"0", b"0", b"integer"),
            (b"25", b"pg_catalog", b"text", b"b", b"0", b"0", b"text"),
        ],
    ),
    b"confirmed_flush_lsn::text": ((TEXT, TEXT, INT8, INT8), [(LSN, b"reserved", b"0", b"0")]),
    b"p.pubinsert": ((BOOL, OID_ARRAY), [(b"t", b"{16384}")]),
    b"IDENTIFY_SYSTEM": ((TEXT, INT4, TEXT, TEXT), [(b"7", b"1", LSN, b"shop")]),
    b"CREATE_REPLICATION_SLOT": ((TEXT, TEXT, TEXT, TEXT), [(b"s", LSN, b"snapshot", b"pgoutput")]),
}
COPY_OUT = message(b"H", pack("!bH", 0, 2) + pack("!hh", 0, 0))
COPY_BOTH = message(b"W", pack("!bH", 0, 0))


class Client:
    """One connection of a client."""

    def __init__(self, connection: socket.socket, tls: ssl.SSLContext | None = None) -> None:
        self._connection = connection
        self._tls = tls
        self._file = connection.makefile("rb")

    def _read(self, size: int) -> bytes:
        result = self._file.read(size)
        if len(result) < size:
            raise EOFError
        return result

    def start(self) -> dict[str, str]:
        """Read the start-up message; return its parameters."""
        while True:
            (size,) = unpack("!I", self._read(4))
            body = self._read(size - 4)
            if unpack("!I", body[:4])[0] == 80877103:  # it asks for TLS
                self._answer_tls()
                continue
            words = body[4:].decode().split("\0")
            return dict(zip(words[::2], words[1::2], strict=False))

    def _answer_tls(self) -> None:
        if self._tls is None:
            self.send(b"N")
            return
        self.send(b"S")
        self._connection = self._tls.wrap_socket(self._connection, server_side=True)
        self._file = self._connection.makefile("rb")

    def close(self) -> None:
        self._file.close()
        self._connection.close()

    @property
    def is_encrypted(self) -> bool:
        return isinstance(self._connection, ssl.SSLSocket)

    def receive(self) -> tuple[bytes, bytes]:
        """Return the next message: its kind and what it says."""
        kind = self._read(1)
        (size,) = unpack("!I", self._read(4))
        return kind, self._read(size - 4)

    def send(self, *parts: bytes) -> None:
        self._connection.sendall(b"".join(parts))

    def flood(self, content: bytes, until: Callable[[], bool] = lambda: False) -> int:
        """Send the same for as long as the client reads; return how many bytes it took."""
        sent = 0
        with contextlib.suppress(OSError):
            while not until():
                self.send(content)
                sent += len(content)
        return sent

    def hang(self) -> None:
        """Send nothing until the client has gone."""
        with contextlib.suppress(EOFError, OSError):
            while True:
                self.receive()


def serve_queries(client: Client, misbehave: Misbehaviour) -> None:
    """Answer queries as a server with one small table does."""
    text = b""
    while True:
        kind, body = client.receive()
        if kind == b"X":
            return
        if kind == b"P":
            text = body.split(b"\0", 2)[1]
        if kind == b"Q":
            text = body[:-1]
        if kind not in (b"Q", b"S"):
            continue
        if misbehave(client, text):
            continue
        client.send(_answer(text, extended=kind == b"S"))


def _answer(text: bytes, *, extended: bool) -> bytes:
    begun = message(b"1") + message(b"2") if extended else b""
    if text.startswith(b"START_REPLICATION"):
        return COPY_BOTH
    if text.startswith(b"COPY"):
        return begun + COPY_OUT + copy_data(b"1\tone\n") + message(b"c") + DONE + READY
    for part, (types, rows) in CATALOGUE.items():
        if part in text:
            return begun + columns(*types) + b"".join(row(*cells) for cells in rows) + DONE + READY
    if text.startswith(b"SELECT"):
        return begun + columns(TEXT) + DONE + READY
    nothing = message(b"n") if extended else b""
    return begun + nothing + message(b"C", b"BEGIN\0") + READY


def challenge(client: Client, iterations: str) -> None:
    """Request a password by SCRAM with this iteration count."""
    client.start()
    client.send(message(b"R", pack("!I", 10) + b"SCRAM-SHA-256\0\0"))
    _, body = client.receive()
    nonce = body.partition(b"r=")[2]
    salt = base64.b64encode(b"salt" * 4)
    first_message = b"r=%b,s=%b,i=%b" % (nonce + b"more", salt, iterations.encode())
    client.send(message(b"R", pack("!I", 11) + first_message))


@contextmanager
def hostile_server(live: ConnectionHandler, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Serve each connection as `live` does; yield the URL."""
    listening = socket.create_server(("127.0.0.1", 0))
    opened: list[socket.socket] = []

    def serve(connection: socket.socket) -> None:
        with (
            contextlib.closing(Client(connection, tls)) as client,
            contextlib.suppress(EOFError, OSError),
        ):
            live(client)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listening.accept()
                opened.append(connection)
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    port = listening.getsockname()[1]
    try:
        yield f"postgresql://u:p@127.0.0.1:{port}/shop?sslmode=disable"
    finally:
        listening.close()
        for connection in opened:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def logged_in(misbehave: Misbehaviour) -> ConnectionHandler:
    """Return a handler for `hostile_server`: accept every login, then answer."""

    def live(client: Client) -> None:
        client.start()
        client.send(LOGIN, GREETING)
        serve_queries(client, misbehave)

    return live
