"""How a query comes to be watched.

wanted    what a subscriber asks for, checked as `POST query` is, and whether it can be watched
reading   its rows and the snapshot that they were read in
layout    which streams and partitions there are
register  positions, rows and definition to the nodes
together  queries that wait at the same time share a snapshot and a call
renewals  queries read again because a node lost sight of them, on Celery
fetches   single documents that rows come to refer to, likewise
"""
