"""Stored rows: merging operations into rows, and the formats of the files that contain them.

latest_operation  merges the operations on a key into one
keys              keys as comparable values, and the position of a key among sorted rows
ids               assigns ids to keys
compound          composite keys as one text
file_store        access to files: in a folder, or as objects in a store
objects           paths of objects in a store
durable           writes a file completely or not at all
sorted_file       Parquet files with an index of the first key of each row group
segment           reads segments, the files that an upload produces
segment_writer    writes segments
"""
