"""Parses the messages of PostgreSQL's built-in output plugin.

Version 1 of the protocol: a transaction is sent as a whole once it has been committed, and one that
was rolled back is never sent. Values are text. Messages that are not about rows, such as those
about types and origins, are skipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct, error

from sources.conditions import SourceUnsuitable
from sources.mapping.cells import UNCHANGED, Cells, UnchangedValue

_BEGIN = Struct("!QqI").unpack_from
_COMMIT = Struct("!BQQq").unpack_from
_INT4 = Struct("!I").unpack_from
_INT2 = Struct("!H").unpack_from
_COLUMN_TAIL = Struct("!Ii").unpack_from
_COLUMN_TAIL_BYTES = 8
_TEXT, _NULL, _NOT_SENT = b"tnu"


MAX_LSN = 2**63 - 1


@dataclass(frozen=True, slots=True)
class TransactionBegin:
    """The start of a transaction that commits at this position."""

    commit_lsn: int
    #: Microseconds since 2000.
    committed_us: int


@dataclass(frozen=True, slots=True)
class CommitMessage:
    """The end of a transaction; the next one begins at `end_lsn`."""

    commit_lsn: int
    end_lsn: int


@dataclass(frozen=True, slots=True)
class RelationColumn:
    """A column of a table."""

    name: str
    type_oid: int
    type_modifier: int


@dataclass(frozen=True, slots=True)
class Relation:
    """The description of a table for the changes that follow."""

    oid: int
    columns: tuple[RelationColumn, ...]


@dataclass(frozen=True, slots=True)
class RowChange:
    """A row that was inserted, updated or deleted."""

    relation: int
    #: The new row; None: it was deleted.
    new: Cells | None
    #: The old row, if sent: its key, if that changed or the row was deleted, or all of it, if the
    #: table's replica identity is FULL.
    old: Cells | None
    is_insert: bool


@dataclass(frozen=True, slots=True)
class Truncate:
    """Tables that were truncated."""

    relations: tuple[int, ...]


Message = TransactionBegin | CommitMessage | Relation | RowChange | Truncate


class UndecodableMessage(SourceUnsuitable):
    """Bytes that are not valid in the protocol."""

    def __init__(self, detail: str) -> None:
        super().__init__("protocol_violation", f"The server sent {detail}.", "/connection")


def read(data: bytes) -> Message | None:
    """Parse a message; None: it is not about rows."""
    try:
        return _read(data)
    except (error, IndexError, ValueError) as invalid:
        raise UndecodableMessage("a message that is truncated or not UTF-8") from invalid


def read_change(data: bytes) -> RowChange:
    """Parse a message that is known to be about a row."""
    change = read(data)
    if not isinstance(change, RowChange):
        raise UndecodableMessage("something other than a row change")
    return change


def _read(data: bytes) -> Message | None:
    kind = data[:1]
    if kind == b"I":
        cells, _ = _cells(data, 6)
        return RowChange(_INT4(data, 1)[0], cells, None, is_insert=True)
    if kind == b"U":
        return _update(data)
    if kind == b"D":
        old, _ = _cells(data, 6)
        return RowChange(_INT4(data, 1)[0], None, old, is_insert=False)
    if kind == b"B":
        commit_lsn, committed_us, _ = _BEGIN(data, 1)
        return TransactionBegin(_check_lsn(commit_lsn), committed_us)
    if kind == b"C":
        _, commit_lsn, end_lsn, _ = _COMMIT(data, 1)
        return CommitMessage(_check_lsn(commit_lsn), _check_lsn(end_lsn))
    if kind == b"R":
        return _relation(data)
    if kind == b"T":
        (count,) = _INT4(data, 1)
        return Truncate(tuple(_INT4(data, 6 + 4 * number)[0] for number in range(count)))
    if kind in (b"O", b"Y", b"M"):
        return None
    raise UndecodableMessage(f"a message of kind {kind!r}")


def _check_lsn(lsn: int) -> int:
    """Check a log position, which is stored as a `bigint`."""
    if lsn > MAX_LSN:
        raise UndecodableMessage("a position beyond any log")
    return lsn


def _update(data: bytes) -> RowChange:
    (relation,) = _INT4(data, 1)
    old, at = None, 5
    if data[at : at + 1] in (b"K", b"O"):
        old, at = _cells(data, at + 1)
    new, _ = _cells(data, at + 1)
    return RowChange(relation, new, old, is_insert=False)


def _cells(data: bytes, at: int) -> tuple[list[str | UnchangedValue | None], int]:
    (count,) = _INT2(data, at)
    at += 2
    cells: list[str | UnchangedValue | None] = []
    for _ in range(count):
        kind = data[at]
        at += 1
        if kind == _TEXT:
            (size,) = _INT4(data, at)
            at += 4
            if at + size > len(data):
                raise UndecodableMessage("a truncated value")
            cells.append(data[at : at + size].decode())
            at += size
        elif kind == _NULL:
            cells.append(None)
        elif kind == _NOT_SENT:
            cells.append(UNCHANGED)
        else:
            raise UndecodableMessage(f"a value of kind {kind:#x}")
    return cells, at


def _relation(data: bytes) -> Relation:
    (oid,) = _INT4(data, 1)
    at = data.index(b"\0", data.index(b"\0", 5) + 1) + 2  # schema, name, replica identity
    (count,) = _INT2(data, at)
    at += 2
    columns = []
    for _ in range(count):
        end = data.index(b"\0", at + 1)
        type_oid, modifier = _COLUMN_TAIL(data, end + 1)
        columns.append(RelationColumn(data[at + 1 : end].decode(), type_oid, modifier))
        at = end + 1 + _COLUMN_TAIL_BYTES
    return Relation(oid, tuple(columns))
