"""Media types of uploads and answers."""

from documents.transfer.formats import CSV, JSON, NDJSON, PARQUET

ARROW = "application/vnd.apache.arrow.stream"
#: Files whose columns a caller may name. All of them belong to one table.
FILE_TYPES = (CSV, JSON, NDJSON, PARQUET)
MEDIA_TYPES = (NDJSON, ARROW, PARQUET, CSV, JSON)

__all__ = ["ARROW", "CSV", "FILE_TYPES", "JSON", "MEDIA_TYPES", "NDJSON", "PARQUET"]
