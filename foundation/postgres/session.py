"""One connection, driven in libpq's pipeline mode.

`run` sends any number of statements and a sync, and reads all results: one round trip. When a
statement fails, those after it up to the sync are not run, the session rolls back an open
transaction, and the error is raised as the driver's exception.

A session serves one task at a time. A task that is cancelled in the middle leaves the connection in
an unknown state, so it is closed; the pool opens a new one.
"""

from __future__ import annotations

import asyncio
import contextlib
import select
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from struct import pack, unpack
from typing import Protocol, cast
from uuid import UUID

import psycopg
from psycopg import pq
from psycopg.pq import ExecStatus, PollingStatus, TransactionStatus

Parameter = bytes | None
#: Reads the cell of a row and a column.
Reader = Callable[[int, int], bytes]
_BINARY = 1
_numbers = count(1)

#: PostgreSQL counts microseconds from here.
EPOCH_2000_US = 946_684_800_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Statement:
    """An SQL text and its parameters' types; each connection prepares it when it first needs it."""

    sql: str
    types: tuple[int, ...] = ()
    name: bytes = field(init=False)
    #: All parameters are sent in binary form.
    formats: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", b"rb%d" % next(_numbers))
        object.__setattr__(self, "formats", (_BINARY,) * len(self.types))


class Oid:
    """Types of parameters, by PostgreSQL's catalogue."""

    BOOL = 16
    BYTEA = 17
    INT8 = 20
    INT2 = 21
    INT4 = 23
    TEXT = 25
    TIMESTAMPTZ = 1184
    UUID = 2950
    XID8 = 5069
    BOOL_ARRAY = 1000
    BYTEA_ARRAY = 1001
    INT4_ARRAY = 1007
    TEXT_ARRAY = 1009
    INT8_ARRAY = 1016
    TIMESTAMPTZ_ARRAY = 1185
    UUID_ARRAY = 2951
    XID8_ARRAY = 271


class StatementResult:
    """Rows of one statement; cells are read in binary form."""

    __slots__ = ("_raw", "rows")

    def __init__(self, raw: pq.abc.PGresult) -> None:
        self._raw = raw
        self.rows = raw.ntuples

    def __len__(self) -> int:
        return self.rows

    @property
    def affected(self) -> int:
        return self._raw.command_tuples or 0

    def raw(self, row: int, column: int) -> bytes | None:
        return self._raw.get_value(row, column)

    def bytes(self, row: int, column: int) -> bytes:
        """Return a cell that is never null."""
        cell = self._raw.get_value(row, column)
        if cell is None:
            raise psycopg.DataError(f"column {column} is null")
        return cell

    def reader(self) -> Reader:
        """Return a reader of cells of columns that are never null, for very many rows."""
        return cast("Reader", self._raw.get_value)

    def text(self, row: int, column: int) -> str:
        return self.bytes(row, column).decode()

    def integer(self, row: int, column: int) -> int:
        """Return an integer of any width."""
        return int.from_bytes(self.bytes(row, column), "big", signed=True)

    def boolean(self, row: int, column: int) -> bool:
        return self.bytes(row, column) == b"\1"

    def uuid(self, row: int, column: int) -> UUID:
        return UUID(bytes=self.bytes(row, column))

    def time_us(self, row: int, column: int) -> int:
        """Return a timestamptz as microseconds since 1970."""
        microseconds: int = unpack("!q", self.bytes(row, column))[0]
        return microseconds + EPOCH_2000_US

    def time_ms(self, row: int, column: int) -> int:
        """Return a timestamptz as milliseconds since 1970."""
        return self.time_us(row, column) // 1000


def int2(value: int) -> bytes:
    return pack("!h", value)


def int4(value: int) -> bytes:
    return pack("!i", value)


def int8(value: int) -> bytes:
    return pack("!q", value)


def timestamptz(time_us: int) -> bytes:
    """Return microseconds since 1970 as a timestamptz."""
    return pack("!q", time_us - EPOCH_2000_US)


def boolean(value: bool) -> bytes:  # noqa: FBT001 -- it is the value itself
    return b"\1" if value else b"\0"


Step = tuple[Statement, Sequence[Parameter]]


class StatementRunner(Protocol):
    """Runs statements."""

    async def run(self, steps: Sequence[Step]) -> list[StatementResult]:
        """Send the statements in one round trip and return their results in order."""


class PostgresSession:
    """A connection in pipeline mode."""

    def __init__(self, wire: pq.abc.PGconn) -> None:
        self._wire = wire
        self._prepared: set[bytes] = set()
        #: Bytes of the largest round trip. libpq's buffers grow to them and never shrink.
        self.largest_sent_bytes = 0
        wire.nonblocking = 1
        wire.enter_pipeline_mode()
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        # Registered once: registering it for each wait costs more than reading.
        self._watched: int | None = wire.socket
        self._loop.add_reader(self._watched, self._readable)
        # Reports only that the connection was reset or closed.
        self._resets = select.poll()
        self._resets.register(self._watched, 0)

    @classmethod
    async def connect(cls, conninfo: str, timeout_s: float = 5.0) -> PostgresSession:
        """Open a connection without blocking the loop."""
        wire = pq.PGconn.connect_start(conninfo.encode())
        try:
            async with asyncio.timeout(timeout_s):
                await connected(wire)
        except TimeoutError:
            wire.finish()
            raise psycopg.OperationalError("the database did not respond in time") from None
        except BaseException:
            wire.finish()
            raise
        return cls(wire)

    @property
    def broken(self) -> bool:
        return self._wire.status != pq.ConnStatus.OK

    @property
    def is_idle(self) -> bool:
        """Whether it can be used for something else."""
        return not self.broken and self._wire.transaction_status == TransactionStatus.IDLE

    @property
    def in_transaction(self) -> bool:
        return self._wire.transaction_status in (
            TransactionStatus.INTRANS,
            TransactionStatus.INERROR,
        )

    async def run(self, steps: Sequence[Step]) -> list[StatementResult]:
        """Send the statements in one round trip and return their results in order."""
        try:
            return await self._run_or_roll_back(steps)
        except psycopg.Error:
            raise
        except BaseException:
            # Results that are still to come would be taken for those of the next statements.
            self.close()
            raise

    async def _run_or_roll_back(self, steps: Sequence[Step]) -> list[StatementResult]:
        try:
            return await self._run(steps)
        except psycopg.Error:
            if self.in_transaction:
                await self._run([(ROLLBACK, ())])
            raise

    async def _run(self, steps: Sequence[Step]) -> list[StatementResult]:
        try:
            sent = self._send(steps)
            raws = await self._receive()
        finally:
            # libpq has closed a broken connection's socket: its number may be given to another.
            if self.broken:
                self._unwatch()
        for (name, preparing), raw in zip(sent, raws, strict=False):
            if preparing and raw.status == ExecStatus.COMMAND_OK:
                self._prepared.add(name)
        if self._watched is None:
            raise psycopg.OperationalError("the connection to the database was lost")
        failed = next((raw for raw in raws if raw.status == ExecStatus.FATAL_ERROR), None)
        if failed is not None:
            raise _error(failed)
        return [
            StatementResult(raw)
            for (_, preparing), raw in zip(sent, raws, strict=True)
            if not preparing
        ]

    def _send(self, steps: Sequence[Step]) -> list[tuple[bytes, bool]]:
        """Queue everything.

        The list names the expected results and which of them are preparations.
        """
        wire, sent, preparing = self._wire, list[tuple[bytes, bool]](), set[bytes]()
        sent_bytes = 0
        for statement, parameters in steps:
            name = statement.name
            if name not in self._prepared and name not in preparing:
                wire.send_prepare(name, statement.sql.encode(), statement.types)
                preparing.add(name)
                sent.append((name, True))
            wire.send_query_prepared(name, parameters, statement.formats, result_format=_BINARY)
            sent.append((name, False))
            sent_bytes += sum(map(len, filter(None, parameters)))
        wire.pipeline_sync()
        self.largest_sent_bytes = max(self.largest_sent_bytes, sent_bytes)
        return sent

    async def _receive(self) -> list[pq.abc.PGresult]:
        """Read results up to the sync, or to the end of the connection."""
        wire, results = self._wire, list[pq.abc.PGresult]()
        unsent, is_end_of_statement = wire.flush(), False
        while True:
            while not wire.is_busy():
                raw = wire.get_result()
                if raw is None:
                    # Each statement ends with one of these; a broken connection has no others.
                    if is_end_of_statement and self.broken:
                        return results
                    is_end_of_statement = True
                    continue
                is_end_of_statement = False
                if raw.status == ExecStatus.PIPELINE_SYNC:
                    return results
                results.append(raw)
            await self._ready(write=bool(unsent))
            wire.consume_input()
            if unsent:
                unsent = wire.flush()

    async def _ready(self, *, write: bool) -> None:
        """Wait until the socket can be read, or, to send the rest, takes more."""
        # uvloop reports a reset only once. libpq may have read what the server sent before it then.
        if self._resets.poll(0):
            return
        waiter = self._waiter = self._loop.create_future()
        if write:
            self._loop.add_writer(self._wire.socket, self._wake)
        try:
            await waiter
        finally:
            self._waiter = None
            if write:
                self._loop.remove_writer(self._wire.socket)

    def _readable(self) -> None:
        if self._waiter is not None:
            self._wake()
            return
        # No results are due: the server has closed the connection, or sends a notice.
        with contextlib.suppress(psycopg.Error):
            self._wire.consume_input()
        if self.broken:
            self._unwatch()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _unwatch(self) -> None:
        watched, self._watched = self._watched, None
        if watched is not None:
            self._loop.remove_reader(watched)

    def close(self) -> None:
        """Close the connection. Idempotent."""
        self._unwatch()
        self._wire.finish()


ROLLBACK = Statement("ROLLBACK")


async def connected(wire: pq.abc.PGconn) -> None:
    """Complete the handshake."""
    state = wire.connect_poll()
    while state != PollingStatus.OK:
        if state == PollingStatus.FAILED:
            raise psycopg.OperationalError(wire.get_error_message())
        await ready(wire.socket, write=state == PollingStatus.WRITING)
        state = wire.connect_poll()


async def ready(descriptor: int, *, write: bool) -> None:
    """Wait until the socket can be read, or, to send the rest, takes more."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        if not done.done():
            done.set_result(None)

    loop.add_reader(descriptor, wake)
    if write:
        loop.add_writer(descriptor, wake)
    try:
        await done
    finally:
        loop.remove_reader(descriptor)
        if write:
            loop.remove_writer(descriptor)


def _error(raw: pq.abc.PGresult) -> psycopg.Error:
    """Return a failed statement as the driver's exception for its SQLSTATE."""
    return psycopg.errors.error_from_result(raw)
