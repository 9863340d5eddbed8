"""Worker processes for input that must not be able to harm the process that received it.

A decoder of a complex format (Parquet, Arrow) can be made to allocate gigabytes, to run for hours
or to crash by a few bytes. It runs in a separate process, which has only the open files that the
job needs, and limits that the kernel enforces. Each job gets a fresh process, so nothing of one
job reaches the next.

limits       the resources of one job
confinement  drops a worker's privileges before it reads its first byte
system_calls the system calls that it may use
messages     requests and replies on a worker's socket
template     the process that loads the decoder once and forks a worker for each job
template_client  the parent's side of it
fair_queue   chooses the owner whose job starts next
pool         runs jobs, a bounded number at once
"""
