"""Uploads: parsing request bodies, and making their rows durable and then visible.

upload_decoder  turns a body into segments in a worker process
worker_files    the open files of a worker
decoding        what a worker does with a body
file_columns    which column of a file becomes which column of a table
lines           NDJSON: lines that name their tables
json_rows       NDJSON and JSON: rows of one table
csv_rows        CSV: rows of one table
columns         Arrow streams and Parquet files: one table each
expansion       splits batches so that expanded dictionaries stay small
operations      received columns as operations on a table's keys
temporary_ids   replaces keys with temporary ids
segments        the files that an upload produces
segment_files   writes batches as segments
own_segments    segments of rows that the installation generates
uploads         uploads in PostgreSQL: open, append, commit, abort
"""
