"""Raises the limit of open files for clients that have very many connections."""

from __future__ import annotations

import resource


def raise_open_files(wanted: int = 0) -> None:
    """Let this process and its children open as many files as they may; fail if that is too few."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if most != resource.RLIM_INFINITY and most < wanted:
        raise SystemExit(f"{wanted} open files are needed, and {most} allowed (ulimit -Hn).")
