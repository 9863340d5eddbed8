"""Queries, in five phases: filter, latest per key, group by, aggregate, filter again.

query_parser  parses a request body
literals      converts values between JSON and columns
filters       a filter as a condition in SQL
ranges        the values of columns that a filter can match
plan          the state that a query sees, and the files that represent it
files         the files that a query reads
run           answers a planned query
engine        DuckDB, which executes queries
sql_text      pieces of SQL with their parameters
scan          reads later files, and skips those that the filter does not need
id_keys       the id of a key at a state
state_rows    the rows of a table at a state: the authority, and later operations
grouping      in SQL: group by, aggregate, order, limit
pieces        splits a large query into key ranges
scan_task     a piece as JSON, for workers
remote_scan   large queries, scanned by the pipeline's workers
"""
