"""Analytics tables: rows arrive at high rates, and each query chooses how fresh its answer is.

Uploads are the atomic unit. They are durable and visible once committed; from then on files move
through stages, each of which is cheaper to query than the one before.

definitions  datasets, their tables and views
schema       a table as columns of Arrow
store        where files lie, and how they become durable
ingest       uploads: what is read of requests and becomes segments
query        the five phases of a query, over any mix of stages
pipeline     what moves files from stage to stage
api          the calls of the data plane
samples      the sample dataset
"""
