"""Analytics tables: rows arrive at high rates, and each query chooses how fresh its result is.

Uploads are the atomic unit. They are durable and visible once committed; from then on files move
through stages, each of which is cheaper to query than the one before.

definitions  datasets, their tables and views
schema       a table as Arrow columns
rows         the formats of stored rows, and where their files are stored
ingest       uploads: request bodies become segments
query        the five phases of a query, over files of any stage
pipeline     moves files from stage to stage
api          the data-plane calls
samples      the sample dataset
"""
