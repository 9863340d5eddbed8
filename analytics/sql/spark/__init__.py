"""Statements on Spark, for more rows than one machine should read.

In the process of the driver, which has neither secrets nor Django:

translation  generates Spark's SQL from a statement, or says what Spark cannot do in the same way
grammar      the syntax that is translated; everything else is rejected
rules        how expressions are written so that Spark computes what DuckDB computes
constants    values as constants of Spark's SQL
letters      upper and lower case as DuckDB defines them
table_views  a dataset's tables as Spark's views over files, at one state
driver       executes statements, and writes each result as Parquet files

In the pipeline's process:

driver_process  starts a driver, and talks with it

In the web server:

remote_run   has a statement executed, and waits for its result
"""
