"""The limit on open files of the processes.

Each connection is an open file, and PostgreSQL, Spark and the storage node open many more. A
shell's soft limit of 1,024 is too low, so it is raised to the hard limit.
"""

import resource

ENOUGH = 65_536
FEW = 4_096


def raise_open_files() -> str:
    """Raise the soft limit for this process and its children; return a warning if it stays low."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    if limit >= FEW:
        return ""
    return (
        f"each process may open only {limit} files (ulimit -Hn), so further clients are "
        f"rejected. Raise the hard limit to {ENOUGH}."
    )
