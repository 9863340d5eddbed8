"""Reading and writing documents, for every part of the product.

facts      a collection's definition, compiled
access     what its rules allow the caller
attempt    a group of writes as one transaction: lock, decide natively, write
key_lookup keys of unique indexes that other documents have
claims     idempotency keys, and the progress of calls
former_backend  calls that were recorded before a collection moved
writer     gathers writes of several callers into groups
reads      documents by id
snapshot   what reading requires of a backend; postgres_snapshot and node/ implement it
node/      collections in the storage node
planner    which rows can answer a query: a proven superset
queries    reads those rows and lets the native matcher decide
"""
