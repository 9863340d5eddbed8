"""SQL over a dataset: read-only statements, which DuckDB executes in a process of their own.

In the web server, which parses no SQL and reads no rows:

request      parses a request body
source       the files of all tables at one state, and the folder that a worker may read
worker_pools  the workers
statement_run  talks with the worker, and streams what it sends

In the worker (`foundation.sandbox`):

worker       does one statement
syntax       checks DuckDB's own parse tree against a list of what is allowed
functions    the functions that statements may call
engine       DuckDB and its settings
tables       a dataset's tables as views over its files
values       values as JSON
output       writes a result in the format that the caller wants

Statements over very many rows run on Spark (`analytics.sql.spark`).
"""
