"""Raises the limit of open files for clients with very many connections."""

from __future__ import annotations

import resource


def raise_open_files(count: int = 0) -> None:
    """Raise this process's and its children's limit of open files; fail if the maximum is too
    low.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if most != resource.RLIM_INFINITY and most < count:
        raise SystemExit(f"{count} open files are needed, and {most} allowed (ulimit -Hn).")
