"""Worker processes for input that must not be able to harm the process that received it.

A decoder of a complex format (Parquet, Arrow) can be made to allocate gigabytes, to run for hours
or to crash by a few bytes; so can a database that executes a caller's SQL. It runs in a separate
process, which has only the open files or folders that the job needs, and limits that the kernel
enforces. Each job gets a fresh process, so nothing of one job reaches the next.

limits       the resources of one job
confinement  drops a worker's privileges before it reads its first byte
system_calls the system calls that it may use
landlock     the files that it may open
failures     why a job has no result
problems     errors of the API that a worker reports
messages     requests and replies on a worker's socket
template     the process that loads the decoder once and forks a worker for each job
template_client  the parent's side of it
session      the server's side of a job that streams its result
fair_queue   chooses the owner whose job starts next
pool         runs jobs, a bounded number at once
"""
