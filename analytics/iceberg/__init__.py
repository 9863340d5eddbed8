"""The authority's tables for readers of the Iceberg REST catalogue."""
