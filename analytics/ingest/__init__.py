"""Uploads: what is read of requests, and how it becomes durable and then visible.

spooled     a body on its way to the disk, in little memory
operations  columns that were sent, as operations on a table's keys
lines       NDJSON: lines that name their tables
columns     Arrow streams and Parquet files: one table each
expansion   batches in pieces that stay small when their dictionaries are expanded
decoding    what a worker process does with a body
worker_files  the files that a worker gets open
received    a body becomes segments in a worker, or nothing is left of it
segments    what an upload leaves
segment_files  batches as the files of segments
own_segments  segments of rows that no caller sent
temporary_ids  keys on their way to ids
uploads     uploads in PostgreSQL: opened, added to, committed under a number, aborted
"""
