"""What moves files from stage to stage: remap, sort, merge, authority.

decisions    what is to be done next, from what there is (pure)
tasks        the work itself, on immutable files; knows neither Django nor PostgreSQL
changes      what a change of the primary view changes in the others
blocks       sorted files read side by side in little memory
ledger       PostgreSQL: what there is, and the transaction that ends a stage
catalogue    the authority as Iceberg tables
workers      where tasks run: a Spark application, or threads
spark        the application
collector    files that no state needs any more
housekeeping when the collector looks
coordinator  the loop around all of it
scans        large queries, beside the stages
settle       all stages at once, for what has to be there before anybody asks
waiting      the coordinator is started by the first dataset

A stage ends with one transaction. Until then its files are not referenced anywhere, and whatever
was in progress when a process died is redone from the previous stage.
"""
