"""Rows as files hold them: which operations make which row, and sorted files of them.

latest    many operations on a key become one
keys      keys as values that can be compared, and where a key lies among sorted rows
ids       which id a key has
compound  keys of several parts as one text
stored    where files are kept: in a folder, or as objects of a store
objects   such objects, and their paths
durable   a file is complete and kept, or it is not there
sorted_file   Parquet with an index of where each row group begins
segment   what an upload left, as it came
"""
