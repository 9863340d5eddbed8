"""Rows as files hold them: which operations make which row, and sorted files of them.

latest    many operations on a key become one
keys      keys as values that can be compared, and where a key lies among sorted rows
ids       which id a key has
durable   a file is complete and on the disk, or it is not there
sorted_file   Parquet with an index of where each row group begins
segment   what an upload left, as it came
"""
