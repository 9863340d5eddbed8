"""Collections over their whole life: declared, changed, back-filled, expired, dropped.

forms        what a caller may say of a collection
declarations schema and access rules, checked natively and kept as exact text
indexes      what a new list of indexes asks for: which go, which come
actions      create, change, drop: under the collection's lock, with an audit entry
describe     a collection as the API shows it
views        the calls
backfill     entries of a new index for the documents that were there before
removal      what dropped collections and indexes leave behind goes in batches
expiry       documents whose time is over are deleted as anybody would delete them
tombstones   marks of deleted documents go after a day
unfinished   back-fills and removals that were lost begin again
storage_usage what documents take, for the tenant's usage
cleaner      everything of a tenant goes with it
"""
