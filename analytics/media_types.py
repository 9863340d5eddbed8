"""What rows come as, and go as."""

NDJSON = "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"
PARQUET = "application/vnd.apache.parquet"
MEDIA_TYPES = (NDJSON, ARROW, PARQUET)
