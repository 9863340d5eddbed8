"""What an import would make of a file, from the beginning of the file."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from data_plane.lines import MAX_LINE_BYTES
from documents.transfer.formats import (
    CSV,
    JSON,
    FileFormat,
    TextType,
    default_path,
    delimiter_name,
)
from documents.transfer.import_record import ImportRecord, json_record
from documents.transfer.parquet.parquet_records import first_rows
from documents.transfer.record_errors import error_of
from documents.transfer.records import (
    SAMPLE_BYTES,
    CsvTable,
    readable,
    whole_sample,
)
from foundation.errors import ApiError, InvalidBody
from foundation.json_types import JsonObject, JsonValue
from foundation.refusals import as_api_error
from rillbase_native import (
    CsvReader,
    JsonItemReader,
    QueryError,
    Value,
    guess_csv_delimiter,
    parse_json,
)

MAX_SHOWN = 20
MAX_PARQUET_BYTES = 8 * 1024 * 1024
MAX_ERRORS = 50
MAX_CHECKED = 1_000
_MAX_VALUES, _MAX_VALUE_CHARS = 3, 80
#: A date, a decimal or an ObjectId, as in `{"$date":"2026-11-21T00:00:00Z"}`.
_TAGGED_TEXT = re.compile(r'\{"\$[A-Za-z]+":"([^"\\]*)"\}')


@dataclass(frozen=True, slots=True)
class FileSample:
    """The beginning of a file."""

    content: bytes
    #: Whether it is the whole file; otherwise its last record may be incomplete.
    is_whole: bool


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of the sample."""

    name: str
    to: str
    type: str | None
    values: list[str]
    #: The type that a Parquet file declares.
    file_type: str | None = None

    def describe(self) -> JsonObject:
        values: list[JsonValue] = list(self.values)
        described: JsonObject = {
            "name": self.name,
            "to": self.to,
            "type": self.type,
            "values": values,
        }
        return described if self.file_type is None else {**described, "file_type": self.file_type}


def preview(sample: FileSample, form: FileFormat, delimiter: str | None) -> JsonObject:
    """Return the columns of a file, its first documents, and the errors of its first records."""
    if form.media_type == CSV:
        return _csv(sample, form, delimiter)
    records = _json_records(sample, form)
    as_they_are = _json_records(sample, FileFormat(form.media_type))
    columns = _json_columns([record for record in map(_read, as_they_are) if record is not None])
    return {"columns": [column.describe() for column in columns], **_checked(records)}


async def parquet_preview(
    tenant_id: UUID, parts: AsyncIterator[bytes], form: FileFormat, *, is_whole: bool
) -> JsonObject:
    """Return the columns of a Parquet file, and its first documents and their errors unless the
    body is only the end of the file, with the footer.
    """
    most = MAX_CHECKED if is_whole else 0
    rows = await first_rows(tenant_id, parts, form, MAX_PARQUET_BYTES, most)
    documents = [document for document in map(_read, rows.as_they_are) if document is not None]
    columns = [
        _Column(name, default_path(name), None, _json_texts(documents, name), kind)
        for name, kind in rows.types.items()
    ]
    described: list[JsonValue] = [column.describe() for column in columns]
    return {"columns": described, "rows": rows.total, **_checked(rows.mapped)}


def _json_texts(documents: Sequence[Value], name: str) -> list[str]:
    values = (document.get(name) for document in documents)
    return _texts(_json_text(value) for value in values if value is not None)


def _csv(sample: FileSample, form: FileFormat, delimiter: str | None) -> JsonObject:
    content = sample.content[:SAMPLE_BYTES]
    if delimiter is None:
        form = FileFormat(CSV, guess_csv_delimiter(content), form.has_header, form.columns)
    if sample.is_whole and len(sample.content) < SAMPLE_BYTES:
        content = whole_sample(content)
    block = readable(partial(CsvReader(delimiter=form.delimiter).push, content))
    if not len(block):
        raise InvalidBody("The file has no complete record.")
    table = CsvTable.of(block, form)
    rows = [block.fields(index) for index in range(table.first, min(len(block), MAX_CHECKED))]
    columns = [
        _Column(name, default_path(name), kind, _texts(row[index] for row in rows if row))
        for index, (name, kind) in enumerate(zip(table.names, table.types, strict=True))
    ]
    return {
        "delimiter": delimiter_name(form.delimiter),
        "columns": [column.describe() for column in columns],
        **_checked(list(table.records(block, table.first))),
    }


def _json_records(sample: FileSample, form: FileFormat) -> list[ImportRecord]:
    mapping = form.mapping()
    if form.media_type == JSON:
        reader = JsonItemReader(MAX_LINE_BYTES)
        items = readable(partial(reader.push, sample.content))
        if sample.is_whole:
            readable(reader.finish)
        return [json_record(line, item, mapping, column) for line, column, item in items]
    lines = sample.content.split(b"\n")
    complete = lines if sample.is_whole else lines[:-1]
    return [json_record(number, line, mapping) for number, line in enumerate(complete, 1)]


def _json_columns(documents: Sequence[Value]) -> list[_Column]:
    """Return the fields of the documents. By default, values keep their types."""
    texts: dict[str, list[Value]] = {}
    for document in documents:
        for name in document.names():
            value = document.get(name)
            if value is not None:
                texts.setdefault(name, []).append(value)
    return [
        _Column(name, default_path(name), None, _texts(_json_text(value) for value in values))
        for name, values in texts.items()
    ]


def _json_text(value: Value) -> str | None:
    if value.is_null:
        return None
    if value.kind == TextType.STRING:
        return value.text()
    text = value.ejson().decode()
    tagged = _TAGGED_TEXT.fullmatch(text)
    return text if tagged is None else tagged[1]


def _texts(values: Iterable[str | None]) -> list[str]:
    """Return the first values, shortened."""
    texts: list[str] = []
    for value in values:
        if value is not None and len(texts) < _MAX_VALUES:
            texts.append(value[:_MAX_VALUE_CHARS])
    return texts


def _checked(records: Sequence[ImportRecord]) -> JsonObject:
    """Return the documents and errors of the first records."""
    documents: list[JsonValue] = []
    errors: list[JsonValue] = []
    checked = failed = 0
    for record in records[:MAX_CHECKED]:
        checked += 1
        try:
            document = _document(record)
        except ApiError as error:
            failed += 1
            if len(errors) < MAX_ERRORS:
                errors.append(error_of(record, error))
            continue
        if document is not None and len(documents) < MAX_SHOWN:
            documents.append({"line": record.line, "document": parse_json(document.ejson())})
    return {"documents": documents, "errors": errors, "checked": checked, "failed": failed}


def _document(record: ImportRecord) -> Value | None:
    try:
        return record.read()
    except QueryError as error:
        raise as_api_error(error) from None


def _read(record: ImportRecord) -> Value | None:
    try:
        return _document(record)
    except ApiError:
        return None
