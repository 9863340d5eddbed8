"""Requests and replies on a worker's socket: a length, then JSON. A request carries open files."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Sequence

from foundation.json_types import JsonObject

MAX_FILES = 64
_LENGTH = struct.Struct("!Q")
_PART_BYTES = 64 * 1024


def encode(message: JsonObject) -> tuple[bytes, bytes]:
    """Return the head and the body of a message."""
    body = json.dumps(message, separators=(",", ":")).encode()
    return _LENGTH.pack(len(body)), body


def decode(received: bytes) -> JsonObject | None:
    """Return the message, or None if it is truncated or malformed."""
    if len(received) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack_from(received)
    if len(received) != _LENGTH.size + length:
        return None
    try:
        message = json.loads(received[_LENGTH.size :])
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


def receive_request(connection: socket.socket) -> tuple[JsonObject, list[int]]:
    """Return a request and its open files. Raise `EOFError` if the other side closes the socket."""
    head, files, _, _ = socket.recv_fds(connection, _LENGTH.size, MAX_FILES)
    while len(head) < _LENGTH.size:
        head += _receive(connection, _LENGTH.size - len(head))
    (length,) = _LENGTH.unpack(head)
    body = bytearray()
    while len(body) < length:
        body += _receive(connection, min(length - len(body), _PART_BYTES))
    return json.loads(body), files


def send_reply(connection: socket.socket, message: JsonObject) -> None:
    connection.sendall(b"".join(encode(message)))


def send_head(connection: socket.socket, head: bytes, files: Sequence[int]) -> None:
    """Send a request's head with its open files over a socket that has sent nothing yet."""
    socket.send_fds(connection, [head], files)


def _receive(connection: socket.socket, count: int) -> bytes:
    part = connection.recv(count)
    if not part:
        raise EOFError
    return part
