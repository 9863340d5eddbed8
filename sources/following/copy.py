"""Compares the table with the documents, as of the slot's start position.

Rows are read in the slot's snapshot. Documents that differ are written, and those without a row
deleted, in batches of ordinary writes. So the first copy fills the collection, and later ones
notify subscribers only of differences. If the process is killed, the copy is repeated with another
slot; documents written before no longer differ.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass

from psycopg import AsyncConnection, sql

from foundation.event_loop_budget import EventLoopBudget
from rillbase_native import Operation, Operations, Value
from sources.conditions import invalid_document
from sources.following import documents, fair_share
from sources.following.offload import converted
from sources.following.progress import SourceProgress
from sources.mapping.shape import DocumentShape, RowLayout
from sources.upstream.catalog import SourceTable, TableSpec

BATCH_ROWS = 1_000
BATCH_BYTES = 4 * 1024 * 1024
DAY_MS = 86_400_000
#: 1970-01-01 as a Julian day number, which can express every date.
JULIAN_1970 = 2_440_588
_ENDLESS = {"$maxKey": "infinity", "$minKey": "-infinity"}


@dataclass(frozen=True, slots=True)
class TableSnapshot:
    """A connection whose transaction sees the table as of the start of the slot."""

    connection: AsyncConnection
    spec: TableSpec
    table: SourceTable

    async def begin(self, snapshot: str) -> None:
        """Import the snapshot exported when the slot was created."""
        await self.connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        await self.connection.execute(
            sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(snapshot))
        )

    async def end(self) -> None:
        await self.connection.execute("ROLLBACK")

    async def rows(self) -> AsyncIterator[tuple[str | None, ...]]:
        """Yield all rows, with columns as text."""
        columns = [sql.Identifier(column.name) for column in self.table.shape.columns]
        query = sql.SQL("COPY (SELECT {} FROM {}) TO STDOUT").format(
            sql.SQL(", ").join(columns), self._name
        )
        async with self.connection.cursor() as cursor, cursor.copy(query) as copy:
            async for row in copy.rows():
                yield row

    async def absent(self, keys: Sequence[Sequence[str]]) -> list[int]:
        """Return the indexes of the keys that have no row."""
        names = self.table.shape.key
        columns = [sql.Identifier(f"k{number}") for number in range(len(names))]
        arrays = [
            sql.SQL("{}::text[]::{}[]").format(sql.Placeholder(), sql.SQL(name))
            for name in self.table.key_types
        ]
        query = sql.SQL(
            "SELECT w.n - 1 FROM unnest({arrays}) WITH ORDINALITY AS w({columns}, n) "
            "WHERE NOT EXISTS (SELECT FROM {table} t WHERE {same})"
        ).format(
            arrays=sql.SQL(", ").join(arrays),
            columns=sql.SQL(", ").join(columns),
            table=self._name,
            same=sql.SQL(" AND ").join(
                sql.SQL("t.{} = w.{}").format(sql.Identifier(name), column)
                for name, column in zip(names, columns, strict=True)
            ),
        )
        values = [[key[number] for key in keys] for number in range(len(names))]
        rows = await (await self.connection.execute(query, values)).fetchall()
        return [row[0] for row in rows]

    @property
    def _name(self) -> sql.Identifier:
        return sql.Identifier(self.spec.schema, self.spec.table)


class TableCopy:
    """One comparison of table and documents."""

    def __init__(
        self, progress: SourceProgress, snapshot: TableSnapshot, *, was_empty: bool
    ) -> None:
        self._progress = progress
        self._snapshot = snapshot
        self._shape = snapshot.table.shape
        self._was_empty = was_empty
        self._count = 0

    async def run(self) -> None:
        """Make the documents match the table."""
        names = [column.name for column in self._shape.columns]
        layout, write = self._shape.layout(names), self._shape.document()
        batch: dict[str, str] = {}
        size = 0
        source, budget = self._progress.row.pk, EventLoopBudget()

        def convert(row: Sequence[str | None]) -> tuple[str, str]:
            fields = _complete(layout, row)
            identity = self._shape.identity(fields)
            return identity, write(identity, fields)

        async for row in self._snapshot.rows():
            row_size = sum(len(cell) for cell in row if cell is not None)
            ((identity, document),) = await converted(
                source, row_size, (convert(cells) for cells in (row,))
            )
            batch[identity] = document
            size += len(document)
            await budget.yield_if_spent()
            if len(batch) >= fair_share.sources.rows(source, BATCH_ROWS) or size >= BATCH_BYTES:
                await self._write_differences(batch)
                batch, size = {}, 0
                await fair_share.sources.turn(source)
        await self._write_differences(batch)
        if not self._was_empty:
            await self._delete_others()

    async def _write_differences(self, batch: Mapping[str, str]) -> None:
        """Write the documents of a batch that are missing or differ."""
        row = self._progress.row
        existing: Mapping[str, bytes] = {}
        if not self._was_empty:
            existing = await documents.read(row.tenant_id, row.collection_name, batch)
        operations = []
        budget = EventLoopBudget()
        for identity, document in batch.items():
            await budget.yield_if_spent()
            try:
                value = Value.parse(document.encode())
            except ValueError as invalid:
                raise invalid_document(invalid) from invalid
            if existing.get(identity) != value.bson():
                key = Value.parse(b"[%b]" % identity.encode()).items()[0]
                operations.append(Operation.replace(key, value))
        if operations:
            await self._progress.write(Operations(operations), self._progress.position)
        self._count += len(batch)
        await self._progress.note(rows_copied=self._count)

    async def _delete_others(self) -> None:
        row = self._progress.row
        async for identities in documents.identities(row.tenant_id, row.collection_name):
            await fair_share.sources.turn(row.pk)
            keys = [_key_texts(self._shape, identity) for identity in identities]
            absent = await self._snapshot.absent(keys)
            operations = [
                Operation.delete(
                    Value.parse(b"[%b]" % json.dumps(identities[n]).encode()).items()[0]
                )
                for n in absent
            ]
            if operations:
                await self._progress.write(Operations(operations), self._progress.position)


def _complete(layout: RowLayout, row: Sequence[str | None]) -> list[str]:
    return [value or "null" for value in layout.fields(row, None)]


def _key_texts(shape: DocumentShape, identity: object) -> list[str]:
    """Return a document's key as text that PostgreSQL reads."""
    columns = [shape.columns[index] for index in shape.key_indexes]
    if len(columns) == 1:
        return [_text(identity)]
    if not isinstance(identity, dict):
        raise TypeError("a key of several columns is an object")
    return [_text(identity[column.name]) for column in columns]


def _text(value: object) -> str:
    """Return the text that was converted to a canonical Extended JSON value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if not isinstance(value, dict):
        raise TypeError("no column that can be part of a key has such a value")
    ((kind, inner),) = value.items()
    if kind in _ENDLESS:
        return _ENDLESS[kind]
    if kind == "$date":
        return f"J{int(inner['$numberLong']) // DAY_MS + JULIAN_1970}"
    return str(inner)
