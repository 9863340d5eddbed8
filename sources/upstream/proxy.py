"""Proxies libpq's connection to a source's server through a local socket.

TLS is terminated here, so every message can be checked before libpq reads it (see `server_stream`).
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from struct import pack

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from sources.conditions import SourceUnsuitable
from sources.upstream.server_stream import ROW_BYTES, ServerStream

#: Timeout per address, to connect and to negotiate TLS.
CONNECT_TIMEOUT_S = 5.0
READ_BYTES = 64 * 1024
PORT = 5432
_TLS_REQUEST = pack("!II", 8, 80877103)
_KEEPALIVE = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}

_Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def proxied(conninfo: str, *, row_bytes: int = ROW_BYTES) -> AsyncIterator[str]:
    """Connect to a server; yield a conninfo for libpq. Raise `SourceUnsuitable` on bad input."""
    upstream = await _dial(conninfo)
    proxy = _Proxy(upstream, ServerStream(row_bytes=row_bytes))
    try:
        with tempfile.TemporaryDirectory(prefix="rillbase-") as directory:
            path = str(Path(directory) / f".s.PGSQL.{PORT}")
            server = await asyncio.start_unix_server(proxy.accept, path)
            try:
                yield make_conninfo(
                    conninfo, host=directory, hostaddr="", port=str(PORT), sslmode="disable"
                )
            finally:
                server.close()
    except psycopg.Error as error:
        if proxy.violation is not None:
            raise proxy.violation from error
        raise
    finally:
        await proxy.close()


class _Proxy:
    def __init__(self, upstream: _Streams, stream: ServerStream) -> None:
        self._upstream = upstream
        self._stream = stream
        self._tasks: list[asyncio.Task[None]] = []
        self._clients: list[asyncio.StreamWriter] = []
        #: Why the connection was closed, if it was the server's fault.
        self.violation: SourceUnsuitable | None = None

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve libpq's connection.

        A second connection cancels a query and closes the first one, since the server may be
        unresponsive.
        """
        self._clients.append(writer)
        if len(self._clients) > 1:
            self._hang_up()
            return
        from_server, to_server = self._upstream
        self._tasks = [
            asyncio.create_task(self._pass(reader, to_server, None)),
            asyncio.create_task(self._pass(from_server, writer, self._stream)),
        ]

    async def _pass(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        stream: ServerStream | None,
    ) -> None:
        try:
            while data := await reader.read(READ_BYTES):
                writer.write(data if stream is None else stream.accept(data))
                await writer.drain()
        except SourceUnsuitable as violation:
            self.violation = violation
        except OSError:
            pass  # One side has disconnected; the other is closed below.
        finally:
            self._hang_up()

    def _hang_up(self) -> None:
        server = self._upstream[1].transport
        if not server.is_closing():
            # The server may not read: do not wait for it.
            unsent = server.get_write_buffer_size()
            (server.abort if unsent else server.close)()
        for writer in self._clients:
            # Deliver the buffer: it may contain the reason why the server disconnected.
            writer.close()

    async def close(self) -> None:
        """Close the connection."""
        # Before the first await, at which the caller may be cancelled.
        self._hang_up()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        # The transports close in the next iteration of the loop.
        await asyncio.sleep(0)
        # Its traceback references this frame and libpq's buffers.
        self.violation = None


async def _dial(conninfo: str) -> _Streams:
    """Connect to the first address that accepts."""
    options = conninfo_to_dict(conninfo)
    name = str(options["host"]).split(",")[0]
    mode, port = str(options["sslmode"]), int(str(options["port"]).split(",")[0])
    failure: OSError = ConnectionError("the host name has no address")
    for address in str(options["hostaddr"]).split(","):
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                return await _connect(address, port, mode, name)
        except OSError as error:
            failure = error
    raise failure


async def _connect(address: str, port: int, mode: str, name: str) -> _Streams:
    tls = _tls(mode)
    if mode != "prefer":
        return await _open(address, port, tls, name, is_required=True)
    try:
        return await _open(address, port, tls, name, is_required=False)
    except ssl.SSLError:
        return await _open(address, port, None, name, is_required=False)


async def _open(
    address: str, port: int, tls: ssl.SSLContext | None, name: str, *, is_required: bool
) -> _Streams:
    connection = await _socket(address, port)
    try:
        if tls is None or not await _agrees_to_tls(connection, is_required=is_required):
            return await asyncio.open_connection(sock=connection)
        return await asyncio.open_connection(sock=connection, ssl=tls, server_hostname=name)
    except BaseException:
        connection.close()
        raise


async def _socket(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in _KEEPALIVE.items():
            # Not available on every system.
            with contextlib.suppress(AttributeError, OSError):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
        await asyncio.get_running_loop().sock_connect(connection, (address, port))
    except BaseException:
        connection.close()
        raise
    return connection


async def _agrees_to_tls(connection: socket.socket, *, is_required: bool) -> bool:
    """Request TLS. Read only one byte, so no plaintext can be taken for encrypted data."""
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(connection, _TLS_REQUEST)
    reply = await loop.sock_recv(connection, 1)
    if reply == b"S":
        return True
    if is_required or reply != b"N":
        raise ConnectionError("the server does not support TLS")
    return False


def _tls(mode: str) -> ssl.SSLContext | None:
    """Return the TLS context; None: no TLS."""
    if mode == "disable":
        return None
    context = ssl.create_default_context()
    context.check_hostname = mode == "verify-full"
    if not mode.startswith("verify-"):
        context.verify_mode = ssl.CERT_NONE
    return context
