"""Opens a Parquet file without expanding its dictionaries."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

#: What Arrow raises for a file that it cannot read.
READ_ERRORS = (
    pa.ArrowInvalid,
    pa.ArrowNotImplementedError,
    pa.ArrowIndexError,
    pa.ArrowKeyError,
    pa.ArrowTypeError,
    pa.ArrowSerializationError,
    UnicodeDecodeError,
    OSError,
)
#: The names of dictionary encodings in footers.
_DICTIONARIES = frozenset({"PLAIN_DICTIONARY", "RLE_DICTIONARY"})


def open_parquet(body: pa.Buffer) -> pq.ParquetFile:
    """Open a file, or raise one of `READ_ERRORS`."""
    with pq.ParquetFile(pa.BufferReader(body)) as file:
        dictionary_columns = _dictionary_columns(file)
    return pq.ParquetFile(pa.BufferReader(body), read_dictionary=dictionary_columns)


def _dictionary_columns(file: pq.ParquetFile) -> list[str]:
    """Return the columns whose values are dictionary indexes.

    They are read without expanding them: a short file can refer to a long text many times.
    """
    if file.metadata.num_row_groups == 0:
        return []
    group = file.metadata.row_group(0)
    chunks = [group.column(index) for index in range(group.num_columns)]
    return [c.path_in_schema for c in chunks if not _DICTIONARIES.isdisjoint(c.encodings)]
