"""Uploads: what is read of requests, and how it becomes durable and then visible.

spooled     a body on its way to the disk, in little memory
operations  columns that were sent, as operations on a table's keys
lines       NDJSON: lines that name their tables
columns     Arrow streams and Parquet files: one table each
received    a body becomes segments, or nothing is left of it
temporary_ids  keys on their way to ids
uploads     uploads in PostgreSQL: opened, added to, committed under a number, aborted
"""
