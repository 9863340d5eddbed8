"""Files as records, each of which becomes a document when it is read."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar
from uuid import UUID

from data_plane.lines import MAX_LINE_BYTES, lines
from documents.transfer.formats import (
    CSV,
    JSON,
    PARQUET,
    ColumnMapping,
    FileFormat,
    default_path,
    mapping_of,
    unique_names,
)
from documents.transfer.import_record import ImportRecord, json_record
from documents.transfer.parquet.parquet_records import parquet_records
from foundation.errors import InvalidBody
from foundation.event_loop_budget import EventLoopBudget
from foundation.refusals import as_api_error
from rillbase_native import (
    CsvReader,
    CsvRecords,
    DocumentMapping,
    JsonItemReader,
    QueryError,
)

T = TypeVar("T")

#: Types are guessed from the beginning of a file.
SAMPLE_BYTES = 256 * 1024
#: Bytes that are parsed at once: few enough not to hold the event loop for long.
STEP_BYTES = 64 * 1024


def records(
    tenant_id: UUID, parts: AsyncIterator[bytes], form: FileFormat
) -> AsyncGenerator[ImportRecord, None]:
    """Yield the records of a file: as it arrives, or once it is complete if it is Parquet."""
    if form.media_type == PARQUET:
        return parquet_records(tenant_id, parts, form)
    if form.media_type == CSV:
        return _csv_records(parts, form)
    if form.media_type == JSON:
        return _json_items(parts, form.mapping())
    return _lines(parts, form.mapping())


async def _lines(
    parts: AsyncIterator[bytes], mapping: DocumentMapping | None
) -> AsyncGenerator[ImportRecord, None]:
    number = 0
    async for line in lines(parts):
        number += 1
        yield json_record(number, line, mapping)


async def _json_items(
    parts: AsyncIterator[bytes], mapping: DocumentMapping | None
) -> AsyncGenerator[ImportRecord, None]:
    reader, budget = JsonItemReader(MAX_LINE_BYTES), EventLoopBudget()
    async for step in _steps(parts):
        for line, column, item in readable(partial(reader.push, step)):
            yield json_record(line, item, mapping, column)
            await budget.yield_if_spent()
    readable(reader.finish)


async def _csv_records(
    parts: AsyncIterator[bytes], form: FileFormat
) -> AsyncGenerator[ImportRecord, None]:
    reader, budget = CsvReader(delimiter=form.delimiter), EventLoopBudget()
    table: CsvTable | None = None
    async for block in _csv_blocks(reader, parts):
        first = 0
        if table is None:
            table = CsvTable.of(block, form)
            first = table.first
        for record in table.records(block, first):
            yield record
            await budget.yield_if_spent()


async def _csv_blocks(
    reader: CsvReader, parts: AsyncIterator[bytes]
) -> AsyncGenerator[CsvRecords, None]:
    async for part in _with_sample(parts):
        block = readable(partial(reader.push, part))
        if len(block):
            yield block
    block = readable(reader.finish)
    if len(block):
        yield block


async def _with_sample(parts: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Yield the sample first, the same bytes however the file arrives, and then small parts."""
    sample: bytearray | None = bytearray()
    async for step in _steps(parts):
        if sample is None:
            yield step
            continue
        sample += step
        if len(sample) >= SAMPLE_BYTES:
            yield bytes(sample[:SAMPLE_BYTES])
            yield bytes(sample[SAMPLE_BYTES:])
            sample = None
    if sample is not None:
        yield whole_sample(bytes(sample))


def whole_sample(file: bytes) -> bytes:
    """Return a file that is a sample by itself, with a line end that completes its last record."""
    return file + b"\n"


async def _steps(parts: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    async for part in parts:
        for start in range(0, len(part), STEP_BYTES):
            yield part[start : start + STEP_BYTES]


@dataclass(frozen=True, slots=True)
class CsvTable:
    """The columns of a CSV file, and what becomes of them."""

    names: list[str]
    #: The first record that is no header.
    first: int
    columns: Sequence[ColumnMapping]
    #: The types that the values of the sample have, for each column of the file.
    types: list[str]
    mapping: DocumentMapping

    @classmethod
    def of(cls, sample: CsvRecords, form: FileFormat) -> CsvTable:
        """Return the columns of a file that begins with these records."""
        if (problem := sample.problem(0)) is not None:
            raise InvalidBody(f"Line {sample.line(0)}: {problem}")
        first = 1 if form.has_header else 0
        header = sample.fields(0)
        names = unique_names(header if form.has_header else [None] * len(header))
        types = [sample.guess_type(first, index) for index in range(len(names))]
        columns = form.columns or [
            ColumnMapping(name, default_path(name), kind)
            for name, kind in zip(names, types, strict=True)
        ]
        try:
            mapping = mapping_of(columns).for_header(names)
        except QueryError as error:
            raise as_api_error(error, "columns") from None
        return cls(names, first, columns, types, mapping)

    def records(self, block: CsvRecords, first: int) -> Iterator[ImportRecord]:
        for index in range(first, len(block)):
            read = partial(block.document, index, self.mapping)
            yield ImportRecord(block.line(index), block.size(index), read)


def readable(read: Callable[[], T]) -> T:
    """Call a reader of a file; raise its errors as errors of the API."""
    try:
        return read()
    except QueryError as error:
        raise as_api_error(error) from None
