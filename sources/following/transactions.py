"""Assembles messages of the output plugin into transactions.

Pure, except for the file of a large transaction. A transaction is kept in memory up to a limit, and
beyond it in an unnamed temporary file. If a transaction cannot be applied row by row, because of a
TRUNCATE or changed columns, it contains the reason for another copy.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from struct import Struct
from typing import IO

from sources.conditions import CopyRequired
from sources.upstream import pgoutput
from sources.upstream.pgoutput import (
    CommitMessage,
    Relation,
    RelationColumn,
    TransactionBegin,
    Truncate,
)

#: Larger transactions are applied in several writes, which subscribers see separately.
MAX_WHOLE_CHANGES = 10_000
MAX_WHOLE_BYTES = 32 * 1024 * 1024
#: Larger transactions are discarded, and the table is copied again.
MAX_SPOOLED_BYTES = 4 * 1024 * 1024 * 1024
#: The file stops growing if less than this would remain free on the disk.
MIN_FREE_BYTES = 1024 * 1024 * 1024
SPACE_CHECK_BYTES = 16 * 1024 * 1024
_SIZE = Struct("!I")


@dataclass(slots=True, eq=False)
class SourceTransaction:
    """The changes of one transaction to the table."""

    commit_lsn: int
    committed_us: int
    end_lsn: int = 0
    #: The messages about rows and tables, while they are kept in memory.
    messages: list[bytes] = field(default_factory=list)
    count: int = 0
    size: int = 0
    #: Why the table has to be copied again instead.
    copy_reason: str = ""
    _spool: IO[bytes] | None = None

    @property
    def is_whole(self) -> bool:
        """Whether it is applied in one write."""
        return self._spool is None

    def add(self, message: bytes) -> None:
        """Add a message about the table."""
        self.count += 1
        self.size += len(message)
        if self.size > MAX_SPOOLED_BYTES or self._lacks_disk_space(len(message)):
            self.discard("transaction_too_large")
        if self.copy_reason:
            return
        if self._spool is None and not self._fits():
            self._spool = tempfile.TemporaryFile()  # noqa: SIM115 -- closed with the transaction
            for earlier in self.messages:
                self._write(self._spool, earlier)
            self.messages.clear()
        if self._spool is None:
            self.messages.append(message)
        else:
            self._write(self._spool, message)

    def discard(self, reason: str) -> None:
        """Discard the changes: the table will be copied."""
        self.copy_reason = self.copy_reason or reason
        self.messages.clear()
        self.close()

    def _lacks_disk_space(self, added_bytes: int) -> bool:
        """Return whether the file leaves too little free disk space. Checked periodically."""
        if self._spool is None or self.size // SPACE_CHECK_BYTES == (
            (self.size - added_bytes) // SPACE_CHECK_BYTES
        ):
            return False
        return shutil.disk_usage(tempfile.gettempdir()).free < MIN_FREE_BYTES

    def _fits(self) -> bool:
        return self.count <= MAX_WHOLE_CHANGES and self.size <= MAX_WHOLE_BYTES

    @staticmethod
    def _write(spool: IO[bytes], message: bytes) -> None:
        spool.write(_SIZE.pack(len(message)))
        spool.write(message)

    def rows(self) -> Iterator[bytes]:
        """Yield the messages of its changes in order."""
        return iter(self.messages) if self._spool is None else self._spooled(self._spool)

    @staticmethod
    def _spooled(spool: IO[bytes]) -> Iterator[bytes]:
        spool.seek(0)
        while head := spool.read(_SIZE.size):
            yield spool.read(_SIZE.unpack(head)[0])

    def close(self) -> None:
        """Close the file."""
        spool, self._spool = self._spool, None
        if spool is not None:
            spool.close()


class Assembler:
    """Assembles the messages of one stream, for one table whose columns are known."""

    def __init__(self, table: int, columns: tuple[RelationColumn, ...]) -> None:
        self._table = table
        self._columns = columns
        self._open: SourceTransaction | None = None

    @property
    def is_between(self) -> bool:
        """Whether the position is between two transactions."""
        return self._open is None

    def feed(self, data: bytes) -> SourceTransaction | None:
        """Process the next message; return the transaction that it completes."""
        kind = data[:1]
        if kind in (b"I", b"U", b"D"):
            self._current().add(data)
            return None
        message = pgoutput.read(data)
        if isinstance(message, TransactionBegin):
            self._open = SourceTransaction(message.commit_lsn, message.committed_us)
        elif isinstance(message, Relation):
            if message.oid != self._table or message.columns != self._columns:
                self._current().discard("table_changed")
        elif isinstance(message, Truncate):
            self._current().discard("truncated")
        elif isinstance(message, CommitMessage):
            transaction, self._open = self._current(), None
            transaction.end_lsn = message.end_lsn
            return transaction
        return None

    def _current(self) -> SourceTransaction:
        if self._open is None:
            raise CopyRequired("stream_broken")
        return self._open

    def close(self) -> None:
        """Discard an incomplete transaction."""
        if self._open is not None:
            self._open.close()
