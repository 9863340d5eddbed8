"""Raw bytes on sockets, for well-behaved and hostile clients."""

from __future__ import annotations

import socket
import struct
import zlib
from dataclasses import dataclass

KEY = "dGhlIHNhbXBsZSBub25jZQ=="


@dataclass(frozen=True)
class Response:
    status: int
    headers: dict[str, str]
    body: bytes


def get(path: str = "/", *headers: str, host: str = "localhost") -> bytes:
    lines = [f"GET {path} HTTP/1.1", f"Host: {host}", *headers, "", ""]
    return "\r\n".join(lines).encode()


def read_response(connection: socket.socket, behind: bytes = b"") -> tuple[Response, bytes]:
    """Return the next response, and the bytes after it."""
    data = bytearray(behind)
    while b"\r\n\r\n" not in data:
        data += _more(connection)
    head, _, rest = bytes(data).partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    pairs = [line.partition(":") for line in lines[1:]]
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    length = int(headers.get("content-length", "0"))
    while len(rest) < length:
        rest += _more(connection)
    return Response(int(lines[0].split()[1]), headers, rest[:length]), rest[length:]


def ends(connection: socket.socket) -> bool:
    """Read until the server ends the connection. Fails after the socket's timeout."""
    try:
        while connection.recv(65536):
            pass
    except ConnectionError:
        pass
    return True


def send_all(connection: socket.socket, data: bytes) -> bool:
    """Send, and return whether the server accepted it."""
    try:
        connection.sendall(data)
    except ConnectionError:
        return False
    return True


def upgrade(path: str = "/", *headers: str, host: str = "localhost") -> bytes:
    return get(
        path,
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Key: {KEY}",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover",
        *headers,
        host=host,
    )


def frame(
    payload: bytes, opcode: int = 1, *, fin: bool = True, deflated: bool = False, mask: bytes = b""
) -> bytes:
    """Return a client's frame. Its mask is all zeros unless the test wants another."""
    size = len(payload)
    first = opcode | (0x80 if fin else 0) | (0x40 if deflated else 0)
    if size < 126:
        head = bytes([first, 0x80 | size])
    elif size < 65536:
        head = bytes([first, 0xFE]) + struct.pack("!H", size)
    else:
        head = bytes([first, 0xFF]) + struct.pack("!Q", size)
    mask = mask or b"\0\0\0\0"
    masked = bytes(b ^ mask[i % 4] for i, b in enumerate(payload)) if any(mask) else payload
    return head + mask + masked


def deflated(data: bytes) -> bytes:
    """Return a message as permessage-deflate sends it."""
    encoder = zlib.compressobj(9, zlib.DEFLATED, -12)
    return (encoder.compress(data) + encoder.flush(zlib.Z_SYNC_FLUSH))[:-4]


def read_frame(connection: socket.socket, behind: bytes = b"") -> tuple[int, bytes, bytes]:
    """Return the server's next frame: its opcode, its payload, and the bytes after it."""
    data = bytearray(behind)
    while len(data) < 2:
        data += _more(connection)
    size, begin = data[1] & 0x7F, 2
    if size == 126:
        while len(data) < 4:
            data += _more(connection)
        size, begin = struct.unpack("!H", data[2:4])[0], 4
    while len(data) < begin + size:
        data += _more(connection)
    payload = bytes(data[begin : begin + size])
    if data[0] & 0x40:
        payload = zlib.decompressobj(-12).decompress(payload + b"\x00\x00\xff\xff")
    return data[0] & 0x0F, payload, bytes(data[begin + size :])


def close_code(connection: socket.socket, behind: bytes = b"") -> int:
    """Return the code with which the server closes a WebSocket."""
    while True:
        opcode, payload, behind = read_frame(connection, behind)
        if opcode == 8:
            return int.from_bytes(payload[:2], "big")


def _more(connection: socket.socket) -> bytes:
    data = connection.recv(65536)
    if not data:
        raise ConnectionError("the server hung up")
    return data
