"""Import and export of whole collections as files.

formats    the formats of files, and how a caller describes one
import_record  a record of a file, which becomes a document
records    files as records
parquet    the rows of Parquet files as records
preview    what an import would make of a file
jobs       the progress of imports, stored in the transactions of their writes
importing  records as writes
claimed_import  an import with an idempotency key
output     the formats of exports
exporting  pages as files
"""
