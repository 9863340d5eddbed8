"""The lifecycle of collections: create, change, backfill, expire, drop.

forms         the request bodies for a collection
declarations  schema and access rules, checked natively and kept as exact text
indexes       compares a new list of indexes with the existing ones
actions       create, change, drop: under the collection's lock, with an audit entry
describe      a collection as the API shows it
views         the calls
backfill      adds existing documents to a new index
index_check   compares the entries of indexes with the documents
technique_advice   which technique suits an index, by how it was used
technique_advisor  rebuilds automatic indexes with the technique that suits them
moves         begin and cancel moves to the other backend
mover         copies what moves, and switches; node_copies and postgres_copies are the directions
removal       removes what dropped collections and indexes leave behind, in batches
expiry        deletes expired documents like any other delete
tombstones    removes tombstones after a day
lost_work     restarts backfills and removals that were lost
storage_usage measures documents for the tenant's usage
cleaner       removes the data of a tenant that is being deleted
"""
