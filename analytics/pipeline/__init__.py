"""Moves files from stage to stage: remap, sort, merge, authority.

decisions      the next steps for a dataset (pure)
steps          one step, from its inputs to the transaction that ends it
tasks          the work itself, on immutable files; uses neither Django nor PostgreSQL
changes        the effect of changes of the primary view on the other views
blocks         reads sorted files side by side in little memory
ledger         PostgreSQL: the state of datasets, and the transaction that ends a stage
catalogue      the authority as Iceberg tables
workers        where tasks run: a Spark application, or threads
spark          the Spark application
collector      removes files that no state needs
housekeeping   schedules the collector
coordinator    the main loop
scans          large queries, in a pool separate from the stages'
settle         runs all stages at once, for samples
idle_pipeline  starts the coordinator once there is a dataset

A stage ends with one transaction. Until then its files are not referenced anywhere. If a process
dies, its unfinished work is repeated from the previous stage.
"""
