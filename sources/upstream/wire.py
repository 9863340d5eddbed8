"""A replication connection: the changes of a slot, and confirmations of what was applied.

The driver does not implement the replication protocol, but exposes libpq, which does: commands are
simple queries, and after START_REPLICATION both sides send copy data. Messages are read as they
arrive, confirmations are written in between, and nothing blocks the event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from struct import Struct

import psycopg
from psycopg import pq
from psycopg.pq import ExecStatus

from foundation.postgres.session import EPOCH_2000_US, connected, ready
from sources.upstream.lsn import format_lsn, parse_lsn
from sources.upstream.proxy import proxied

CONNECT_TIMEOUT_S = 10.0
#: Timeout of commands that do not wait for transactions.
COMMAND_TIMEOUT_S = 30.0
_DATA = Struct("!QQq").unpack_from
_DATA_HEAD_BYTES = 25
_ALIVE = Struct("!QqB").unpack_from
_STATUS = Struct("!cQQQqB").pack


@dataclass(frozen=True, slots=True)
class LogMessage:
    """A message of the output plugin, and when the server sent it (microseconds since 2000)."""

    content: bytes
    sent_us: int


@dataclass(frozen=True, slots=True)
class Keepalive:
    """Everything up to this position was sent."""

    up_to: int
    #: Whether the server requests an immediate reply.
    wants_reply: bool


@dataclass(frozen=True, slots=True)
class NewSlot:
    """A slot that begins at a position, and the database snapshot of that position."""

    starts_at: int
    snapshot: str


class ReplicationWire:
    """One replication connection."""

    def __init__(self, wire: pq.abc.PGconn) -> None:
        self._wire = wire
        self._confirmed = 0
        wire.nonblocking = 1

    @classmethod
    async def connect(cls, conninfo: str) -> ReplicationWire:
        """Open a connection that accepts replication commands."""
        wire = pq.PGconn.connect_start(
            psycopg.conninfo.make_conninfo(conninfo, replication="database").encode()
        )
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                await connected(wire)
        except TimeoutError:
            wire.finish()
            raise psycopg.OperationalError("the server did not respond in time") from None
        except BaseException:
            wire.finish()
            raise
        return cls(wire)

    async def system(self) -> str:
        """Return the identifier of this server's data."""
        async with asyncio.timeout(COMMAND_TIMEOUT_S):
            row = await self._command("IDENTIFY_SYSTEM")
        return row[0]

    async def create_slot(self, name: str) -> NewSlot:
        """Create a slot. Its snapshot is valid until the next command on this connection.

        The server responds once all transactions in progress have ended.
        """
        row = await self._command(
            f'CREATE_REPLICATION_SLOT "{name}" LOGICAL pgoutput EXPORT_SNAPSHOT'
        )
        return NewSlot(parse_lsn(row[1]), row[2])

    async def start(self, slot: str, lsn: int, publication: str) -> None:
        """Start streaming transactions that were committed after a position."""
        self._confirmed = lsn
        async with asyncio.timeout(COMMAND_TIMEOUT_S):
            await self._command(
                f'START_REPLICATION SLOT "{slot}" LOGICAL {format_lsn(lsn)} '
                f"(proto_version '1', publication_names '\"{publication}\"')"
            )

    async def _command(self, text: str) -> list[str]:
        """Run a command and return its only row."""
        wire = self._wire
        wire.send_query(text.encode())
        await self._flush()
        row: list[str] = []
        while (result := await self._result()) is not None:
            if result.status == ExecStatus.FATAL_ERROR:
                raise psycopg.errors.error_from_result(result)
            if result.status == ExecStatus.COPY_BOTH:
                return row
            if result.status == ExecStatus.TUPLES_OK and result.ntuples:
                row = [(result.get_value(0, n) or b"").decode() for n in range(result.nfields)]
        return row

    async def _result(self) -> pq.abc.PGresult | None:
        while self._wire.is_busy():
            await ready(self._wire.socket, write=False)
            self._wire.consume_input()
        return self._wire.get_result()

    async def _flush(self) -> None:
        while self._wire.flush():
            await ready(self._wire.socket, write=True)
            self._wire.consume_input()

    async def messages(self) -> AsyncIterator[LogMessage | Keepalive]:
        """Yield the server's messages, until the connection ends, which raises."""
        wire = self._wire
        while True:
            size, content = wire.get_copy_data(1)
            if size > 0:
                message = _message(bytes(content))
                if message is not None:
                    yield message
            elif size == 0:
                await ready(wire.socket, write=False)
                wire.consume_input()
            else:
                raise self._end_error()

    def _end_error(self) -> psycopg.Error:
        result = self._wire.get_result()
        if result is not None and result.status == ExecStatus.FATAL_ERROR:
            return psycopg.errors.error_from_result(result)
        return psycopg.OperationalError("the server ended replication")

    def confirm(self, lsn: int) -> None:
        """Confirm to the server that everything before this position is durable here."""
        self._confirmed = max(self._confirmed, lsn)
        if self._wire.flush():
            # The previous one has not been sent. If the server never reads, only one is buffered.
            return
        now_us = time.time_ns() // 1000 - EPOCH_2000_US
        at = self._confirmed
        self._wire.put_copy_data(_STATUS(b"r", at, at, at, now_us, 0))
        self._wire.flush()

    def close(self) -> None:
        """Close the connection. Idempotent."""
        self._wire.finish()


@asynccontextmanager
async def replication(conninfo: str) -> AsyncIterator[ReplicationWire]:
    """Open a connection that accepts replication commands, for the duration of the block."""
    async with proxied(conninfo) as local:
        wire = await ReplicationWire.connect(local)
        try:
            yield wire
        finally:
            wire.close()


def _message(data: bytes) -> LogMessage | Keepalive | None:
    kind = data[:1]
    if kind == b"w":
        _, _, sent_us = _DATA(data, 1)
        return LogMessage(data[_DATA_HEAD_BYTES:], sent_us)
    if kind == b"k":
        up_to, _, wants_reply = _ALIVE(data, 1)
        return Keepalive(up_to, bool(wants_reply))
    return None
