"""Parquet files as documents, and documents as Parquet files.

Only workers load Arrow.

arrow_setup      prepares a sandboxed worker for Arrow
parquet_file     opens a file without expanding its dictionaries
column_texts     columns as Extended JSON
row_reader       what a worker does with a file that is read
value_columns    Extended JSON as columns
row_writer       what a worker does with a file that is written
worker           chooses between both
parquet_workers  the workers of a web server
parquet_records  the rows of a file as records, for imports and previews
parquet_output   documents as a file
"""
