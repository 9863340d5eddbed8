"""Access to the control plane's rows for the follower process.

All statements run sequentially on one thread's connection, which stays open: opening one costs more
CPU time than the statements, and would be needed several times a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

from django.db import InterfaceError, OperationalError, connections

ALIAS = "relay"
T = TypeVar("T")


async def on_rows(work: Callable[[], T]) -> T:
    """Run database work in order. It is retried once on errors, so it must be idempotent."""
    return await asyncio.get_running_loop().run_in_executor(_thread(), _run, work)


async def disconnect() -> None:
    """Close the connection. The next statement opens another one."""
    await asyncio.get_running_loop().run_in_executor(_thread(), _close)


@lru_cache(maxsize=1)
def _thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="rows")


def _close() -> None:
    connections[ALIAS].close()


def _run(work: Callable[[], T]) -> T:
    try:
        return work()
    except (InterfaceError, OperationalError):
        # After a server restart the next statement fails first.
        _close()
        return work()
