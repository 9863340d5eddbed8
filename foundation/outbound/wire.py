"""One HTTP exchange over one socket, bounded in time and bytes.

The standard library's HTTP client times out per read, so a server that sends a byte now and then
could block it forever, and its headers could be megabytes. Here each read and write gets only
what is left of one deadline, and all bytes received count against one budget.
"""

from __future__ import annotations

import io
import socket
import ssl
import time
from http.client import HTTPConnection
from typing import cast

from foundation.outbound.errors import ResponseTooLarge, TargetTimeout

SEND_CHUNK_BYTES = 64 * 1024


class Deadline:
    """A point in time after which all waits end."""

    def __init__(self, seconds: float) -> None:
        self._begin = time.monotonic()
        self._end = self._begin + seconds

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self._begin

    def remaining_s(self) -> float:
        remaining = self._end - time.monotonic()
        if remaining <= 0:
            raise TargetTimeout("The target did not complete its response in time.")
        return remaining


class BoundedReader(io.RawIOBase):
    """Reads from a socket until the deadline has passed or the budget is used up."""

    def __init__(self, sock: socket.socket, deadline: Deadline, budget_bytes: int) -> None:
        self._sock = sock
        self._deadline = deadline
        self._budget_bytes = budget_bytes

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        self._sock.settimeout(self._deadline.remaining_s())
        count = self._sock.recv_into(cast("bytearray", buffer))
        self._budget_bytes -= count
        if self._budget_bytes < 0:
            raise ResponseTooLarge("The response is larger than allowed.")
        return count


class BoundedSocket:
    """The part of a socket that an `HTTPConnection` uses."""

    def __init__(self, sock: socket.socket, deadline: Deadline, budget_bytes: int) -> None:
        self._sock = sock
        self._deadline = deadline
        self._budget_bytes = budget_bytes

    def sendall(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            self._sock.settimeout(self._deadline.remaining_s())
            view = view[self._sock.send(view[:SEND_CHUNK_BYTES]) :]

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(BoundedReader(self._sock, self._deadline, self._budget_bytes))

    def close(self) -> None:
        """Do nothing: the body of the response may still be unread. The owner of the socket closes
        it.


        The HTTP connection closes "its" socket as soon as it has read a head that announces the
        end of the connection, and expects files made of it to stay open, as real sockets do.
        """


def open_socket(address: str, port: int, timeout_s: float) -> socket.socket:
    """Connect to an address (never a name, so nothing is resolved again)."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.settimeout(timeout_s)
        sock.connect((address, port))
    except BaseException:
        sock.close()
        raise
    return sock


def start_tls(
    sock: socket.socket, context: ssl.SSLContext, host: str, deadline: Deadline
) -> socket.socket:
    """Do the TLS handshake; the certificate must be valid for the host of the URL."""
    try:
        sock.settimeout(deadline.remaining_s())
        return context.wrap_socket(sock, server_hostname=host)
    except BaseException:
        sock.close()
        raise


def connection_over(sock: socket.socket, deadline: Deadline, budget_bytes: int) -> HTTPConnection:
    """Return the standard library's HTTP connection on top of an open socket."""
    connection = HTTPConnection("unused.invalid")
    connection.auto_open = 0
    connection.sock = cast("socket.socket", BoundedSocket(sock, deadline, budget_bytes))
    return connection
