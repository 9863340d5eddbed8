"""Messages on a worker's socket: a length, then JSON. A request carries open files.

Between messages, the worker of a session sends parts of a stream: the same with a mark on the
length, then bytes.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Sequence

from foundation.json_types import JsonObject

MAX_FILES = 64
_LENGTH = struct.Struct("!Q")
_PART_BYTES = 64 * 1024
#: Marks the length of a part of a stream.
STREAM = 1 << 63
HEAD_BYTES = _LENGTH.size


def encode(message: JsonObject) -> tuple[bytes, bytes]:
    """Return the head and the body of a message."""
    body = json.dumps(message, separators=(",", ":")).encode()
    return _LENGTH.pack(len(body)), body


def head_of(length: int) -> bytes:
    return _LENGTH.pack(length)


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


def send_part(connection: socket.socket, part: bytes | memoryview) -> None:
    """Send a part of a stream."""
    connection.sendall(_LENGTH.pack(STREAM | len(part)))
    connection.sendall(part)


def length_of(head: bytes) -> int:
    """Return the length of a message, or, with its mark, that of a part of a stream."""
    return int(_LENGTH.unpack(head)[0])


def send_head(connection: socket.socket, head: bytes, files: Sequence[int]) -> None:
    """Send a request's head with its open files over a socket that has sent nothing yet."""
    socket.send_fds(connection, [head], files)


def _receive(connection: socket.socket, count: int) -> bytes:
    part = connection.recv(count)
    if not part:
        raise EOFError
    return part
