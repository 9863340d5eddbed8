"""Manifest lists and manifests with the locations that readers outside the installation use.

Both are Avro files that name other files by absolute locations. Rewritten files are cached by name,
because the originals never change. A manifest list also contains the sizes of its manifests, so
every rewriting of a file, in any process, has the same bytes.
"""

from __future__ import annotations

import io
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import cast

from pyiceberg.avro.file import AvroFile, AvroOutputFile
from pyiceberg.io import FileIO, OutputFile
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import StructType

from analytics.iceberg.file_locations import FileLocations

#: Memory for rewritten files of all datasets.
CACHE_BYTES = 64 * 1024 * 1024

# Numbers of fields in the specification of Iceberg.
_MANIFEST_PATH, _MANIFEST_LENGTH, _DATA_FILE, _FILE_PATH = 500, 501, 2, 100


@dataclass(frozen=True, slots=True)
class RewrittenFile:
    """A rewritten file, and the locations that the original names."""

    content: bytes
    named: frozenset[str]

    @property
    def size(self) -> int:
        return len(self.content) + sum(map(len, self.named))


class RewrittenFiles:
    """Rewritten files by the location of the original. The least recently used are evicted."""

    def __init__(self, max_bytes: int = CACHE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._files: OrderedDict[str, RewrittenFile] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, location: str, rewrite: Callable[[], RewrittenFile]) -> RewrittenFile:
        """Return a rewritten file, and rewrite it first if it is not cached."""
        with self._lock:
            if (file := self._files.get(location)) is not None:
                self._files.move_to_end(location)
                return file
        file = rewrite()
        with self._lock:
            if location not in self._files:
                self._files[location] = file
                self._bytes += file.size
            while self._bytes > self._max_bytes:
                self._bytes -= self._files.popitem(last=False)[1].size
        return file


_cache = RewrittenFiles()


def manifest_list(files: FileIO, location: str, locations: FileLocations) -> RewrittenFile:
    """Return a rewritten manifest list, which names manifests."""

    def change(record: Record, schema: StructType) -> str:
        path = _position(schema, _MANIFEST_PATH)
        named = str(record[path])
        record[_position(schema, _MANIFEST_LENGTH)] = len(manifest(files, named, locations).content)
        record[path] = locations.public(named)
        return named

    return _cache.get(location, lambda: _rewrite(files, location, "manifest_file", change))


def manifest(files: FileIO, location: str, locations: FileLocations) -> RewrittenFile:
    """Return a rewritten manifest, which names data files."""
    locations.relative(location)

    def change(record: Record, schema: StructType) -> str:
        position = _position(schema, _DATA_FILE)
        data_file, path = (
            record[position],
            _position(schema.fields[position].field_type, _FILE_PATH),
        )
        named = str(data_file[path])
        data_file[path] = locations.public(named)
        return named

    return _cache.get(location, lambda: _rewrite(files, location, "manifest_entry", change))


def _rewrite(
    files: FileIO, location: str, schema_name: str, change: Callable[[Record, StructType], str]
) -> RewrittenFile:
    with AvroFile[Record](files.new_input(location)) as original:
        schema, header = original.schema, original.header
        records = list(original)
    fields = schema.as_struct()
    named = frozenset(change(record, fields) for record in records)
    return RewrittenFile(_encode(location, schema, schema_name, header.meta, records), named)


def _encode(
    location: str, schema: Schema, name: str, metadata: dict[str, str], records: list[Record]
) -> bytes:
    sink = io.BytesIO()
    output = AvroOutputFile[Record](
        cast("OutputFile", _MemoryFile(sink)), schema, name, metadata=metadata
    )
    # Random by default.
    output.sync_bytes = sha256(location.encode()).digest()[: len(output.sync_bytes)]
    with output:
        output.write_block(records)
        return sink.getvalue()


class _MemoryFile:
    """What an Avro file is written to."""

    def __init__(self, sink: io.BytesIO) -> None:
        self._sink = sink

    def create(self, *, overwrite: bool) -> io.BytesIO:
        return self._sink


def _position(schema: object, field_id: int) -> int:
    if not isinstance(schema, StructType):
        raise TypeError(f"a file of Iceberg metadata has {schema} instead of a record")
    return [field.field_id for field in schema.fields].index(field_id)
