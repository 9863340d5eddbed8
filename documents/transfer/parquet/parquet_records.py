"""The rows of a Parquet file as records.

Parquet is read from its end, so the file is complete on disk before its first row is read. Workers
then decode it part by part: while documents are written, no worker is occupied, and the disk holds
only the file and one part as text.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast
from uuid import UUID
from weakref import WeakValueDictionary

from data_plane.body_spool import SpooledBody, spooled
from data_plane.file_workers import MIB, limits_for
from data_plane.lines import MAX_LINE_BYTES, lines
from documents.transfer.formats import ColumnMapping, FileFormat, default_path, mapping_of
from documents.transfer.import_record import ImportRecord, json_record
from documents.transfer.parquet.parquet_workers import workers
from foundation.errors import BodyTooLarge, FieldProblem, InvalidBody, InvalidDocument
from foundation.event_loop_budget import EventLoopBudget
from foundation.json_types import JsonObject
from foundation.message_memory import MessageMemory
from foundation.per_loop import PerLoop
from foundation.refusals import as_api_error
from rillbase_native import DocumentMapping, QueryError, Value

MAX_FILE_BYTES = 256 * MIB
#: Disk space for the files of all imports of a web server. Others wait unread.
_DISK_BYTES = 1024 * MIB
#: Rows that are text on the disk at once.
_PART_BYTES, _PART_ROWS = 32 * MIB, 1_000_000
_READ_BYTES = 256 * 1024

_disk = PerLoop(lambda: MessageMemory(_DISK_BYTES))
#: A tenant's files are imported one after another, so that it never holds all of the disk space.
_running: WeakValueDictionary[UUID, asyncio.Semaphore] = WeakValueDictionary()


@dataclass(frozen=True, slots=True)
class DecodedPart:
    """What a worker reports about a file and the rows that it wrote."""

    #: The types of the columns, as the file declares them.
    types: dict[str, str]
    #: The rows of the whole file.
    total: int
    written: int
    is_last: bool

    def mapping(self, form: FileFormat) -> DocumentMapping:
        """Return what becomes of the columns, or raise `InvalidParameter`."""
        names = list(self.types)
        columns = form.columns or [ColumnMapping(name, default_path(name)) for name in names]
        try:
            return mapping_of(columns).for_header(names)
        except QueryError as error:
            raise as_api_error(error, "columns") from None


@dataclass(frozen=True, slots=True)
class ParquetSample:
    """The beginning of a file."""

    types: dict[str, str]
    total: int
    mapped: list[ImportRecord]
    as_they_are: list[ImportRecord]


async def parquet_records(
    tenant_id: UUID, parts: AsyncIterator[bytes], form: FileFormat
) -> AsyncGenerator[ImportRecord, None]:
    """Yield the rows of a file."""
    async with _on_disk(tenant_id, parts, MAX_FILE_BYTES) as file:
        part = await file.decode(form, 0, _PART_ROWS)
        mapping, first = part.mapping(form), 0
        while part.written:
            async with aclosing(file.records(form, mapping, first)) as records:
                async for record in records:
                    yield record
            if part.is_last:
                return
            first += part.written
            part = await file.decode(form, first, _PART_ROWS)


async def first_rows(
    tenant_id: UUID, parts: AsyncIterator[bytes], form: FileFormat, max_bytes: int, max_rows: int
) -> ParquetSample:
    """Return the first rows of a file. For no rows, the end of the file suffices."""
    everything = FileFormat(form.media_type)
    async with _on_disk(tenant_id, parts, max_bytes) as file:
        part = await file.decode(everything, 0, max_rows)
        mapping = part.mapping(form)
        as_they_are = [record async for record in file.records(everything, None, 0)]
        if form.columns is not None:
            await file.decode(form, 0, max_rows)
        mapped = [record async for record in file.records(form, mapping, 0)]
    return ParquetSample(part.types, part.total, mapped, as_they_are)


@asynccontextmanager
async def _on_disk(
    tenant_id: UUID, parts: AsyncIterator[bytes], max_bytes: int
) -> AsyncIterator[_DecodedFile]:
    """Yield the complete file, once there is space for it."""
    disk = _disk.get()
    claim = disk.begin()

    async def claimed() -> AsyncIterator[bytes]:
        async for part in parts:
            if claim.n_bytes + len(part) > max_bytes:
                raise BodyTooLarge(f"A Parquet file may have at most {max_bytes} bytes.")
            await disk.extended(claim, len(part))
            yield part

    async with _running.setdefault(tenant_id, asyncio.Semaphore(1)):
        try:
            with TemporaryDirectory(prefix="rillbase-import-") as folder:
                async with spooled(claimed(), Path(folder), nullcontext) as body:
                    yield _DecodedFile(tenant_id, body, Path(folder) / "rows")
        finally:
            claim.release()


@dataclass(frozen=True, slots=True)
class _DecodedFile:
    """A file, and the text of the rows that were decoded last."""

    tenant_id: UUID
    body: SpooledBody
    output: Path

    async def decode(self, form: FileFormat, first: int, max_rows: int) -> DecodedPart:
        """Decode rows from `first` on; they replace those before."""
        chosen = None if form.columns is None else [column.source for column in form.columns]
        request: JsonObject = {
            "task": "read",
            "columns": cast("list[object]", chosen),  # type: ignore[dict-item]
            "first": first,
            "max_rows": max_rows,
            "max_bytes": _PART_BYTES,
        }
        limits = limits_for(self.body.size, _PART_BYTES + MAX_LINE_BYTES + MIB)
        async with workers.turn(self.tenant_id):
            descriptors = [
                os.open(self.body.path, os.O_RDONLY),
                os.open(self.output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
            ]
            try:
                result = await workers.run(request, descriptors, limits)
            finally:
                for descriptor in descriptors:
                    os.close(descriptor)
        if "problem" in result:
            raise InvalidBody(str(result["problem"]))
        columns = cast("list[dict[str, str]]", result["columns"])
        return DecodedPart(
            {column["name"]: column["type"] for column in columns},
            cast("int", result["rows"]),
            cast("int", result["written"]),
            bool(result["is_last"]),
        )

    async def records(
        self, form: FileFormat, mapping: DocumentMapping | None, first: int
    ) -> AsyncGenerator[ImportRecord, None]:
        """Yield the rows that were decoded last."""
        paths = {column.source: column.target for column in form.columns or ()}
        number, budget = first, EventLoopBudget()
        async with aclosing(lines(self._parts())) as decoded:
            async for line in decoded:
                number += 1
                yield _record(number, line, mapping, paths)
                await budget.yield_if_spent()

    async def _parts(self) -> AsyncIterator[bytes]:
        with self.output.open("rb") as file:
            while part := await asyncio.to_thread(file.read, _READ_BYTES):
                yield part


def _record(
    number: int, line: bytes, mapping: DocumentMapping | None, paths: dict[str, str]
) -> ImportRecord:
    """Return the record of a line that a worker has written."""
    kind, text = line[:1], line[1:]
    if kind == b"=":
        return json_record(number, text, mapping)

    def refuse() -> Value | None:
        column, detail = _problem(text)
        pointer = f"/{paths.get(column, default_path(column))}" if column else ""
        detail = f"{column}: {detail}" if column else detail
        raise InvalidDocument(detail, errors=[FieldProblem(pointer, "invalid_document", detail)])

    return ImportRecord(number, len(text), refuse)


def _problem(text: bytes) -> tuple[str, str]:
    """Return a column and what is wrong with it; a worker may write anything."""
    try:
        column, detail = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        column, detail = "", "The row cannot be read."
    return str(column), str(detail)
