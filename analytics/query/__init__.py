"""Queries, in five phases: filter, latest per key, group by, aggregate, filter again.

query_parser  a request body as a `Query`
literals values in a body as values of a column
filters  a filter as an expression over columns, and which keys can match it
files    what a query reads
plan     which state a query sees, and which files stand for it
scan     reading those files, as little of them as the filter needs
id_keys  which id a key has at a state
state_rows  the rows of a table at a state: the authority, and what has come since
pieces   large queries, a range of keys at a time
scan_task    a piece as JSON, for workers
remote_scan  large queries, scanned by the pipeline's workers
grouping  group by, aggregate, order, limit
"""
