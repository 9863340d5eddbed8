"""Valkey connections for threads, for commands that every request sends.

A thread takes a connection, sends its command, waits for the reply and puts the connection back.
Measured, a command costs a third of the CPU time that the general client takes. Everything rarer
uses that client; event loops use `foundation.valkey_wire`, whose protocol this shares.
"""

from __future__ import annotations

import os
import socket
from typing import cast
from urllib.parse import urlsplit

from redis.exceptions import ConnectionError as ValkeyAway
from redis.exceptions import ResponseError

from foundation.resp_pipeline import Argument, encoded
from foundation.valkey_wire import Reply, greeting, reply_reader, tls_context

CHUNK_BYTES = 64 * 1024


class ValkeySockets:
    """Connects when there is no free connection. Thread-safe, and empty after a fork."""

    def __init__(self, url: str, *, connect_timeout_s: float, answer_timeout_s: float) -> None:
        self._parts = urlsplit(url)
        self._connect_timeout_s = connect_timeout_s
        self._answer_timeout_s = answer_timeout_s
        self._free: list[socket.socket] = []
        self._process = os.getpid()

    def call(self, *command: Argument) -> Reply:
        """Send one command and return its reply; raise `RedisError` when there is none.

        An idle connection may have been closed by the server, for example in a restart. That is
        detected before any reply, so the command is sent once more over a new connection.
        """
        wire = encoded(command)
        connection = self._take()
        if connection is not None:
            try:
                return self._exchange(connection, wire)
            except _ClosedByPeer:
                self.close()
        return self._exchange(self._connect(), wire)

    def close(self) -> None:
        """Close the free connections."""
        while (connection := self._take()) is not None:
            connection.close()

    def _take(self) -> socket.socket | None:
        if self._process != os.getpid():
            # These belong to the parent; closing them here does not affect it.
            self._free, self._process = [], os.getpid()
        try:
            return self._free.pop()
        except IndexError:
            return None

    def _exchange(self, connection: socket.socket, wire: bytes, *, keep: bool = True) -> Reply:
        """Send, await the reply, put the connection back if it is still good."""
        try:
            connection.sendall(wire)
            reply = _receive(connection)
        except TimeoutError:
            connection.close()
            raise ValkeyAway("no response in time") from None
        except (OSError, ValueError) as error:
            connection.close()
            raise _ClosedByPeer(str(error)) from None
        if keep:
            self._free.append(connection)
        if isinstance(reply, ResponseError):
            if not keep:
                connection.close()
            raise reply
        return reply

    def _connect(self) -> socket.socket:
        try:
            connection = self._open()
        except OSError as error:
            raise ValkeyAway(f"cannot connect: {error}") from None
        connection.settimeout(self._answer_timeout_s)
        for command in greeting(self._parts):
            self._exchange(connection, encoded(command), keep=False)
        return connection

    def _open(self) -> socket.socket:
        if self._parts.scheme == "unix":
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connection.settimeout(self._connect_timeout_s)
            connection.connect(self._parts.path)
            return connection
        address = (self._parts.hostname or "localhost", self._parts.port or 6379)
        connection = socket.create_connection(address, self._connect_timeout_s)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._parts.scheme == "rediss":
            context = tls_context(self._parts)
            return context.wrap_socket(connection, server_hostname=address[0])
        return connection


class _ClosedByPeer(ValkeyAway):
    """The connection ended before a reply came."""


def _receive(connection: socket.socket) -> Reply | ResponseError:
    reader = reply_reader()
    while True:
        data = connection.recv(CHUNK_BYTES)
        if not data:
            raise ConnectionResetError("the server closed the connection")
        for reply in reader.read(data):
            return cast("Reply | ResponseError", reply)
