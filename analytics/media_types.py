"""Media types of uploads and answers."""

NDJSON = "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"
PARQUET = "application/vnd.apache.parquet"
MEDIA_TYPES = (NDJSON, ARROW, PARQUET)
