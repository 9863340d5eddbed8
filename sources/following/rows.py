"""The control plane's rows, as the process that follows reads and writes them.

All statements go one after the other over one thread's connection, which stays open: to connect
costs both sides more of their processors than what is said then, and it would be done several times
a second beside the documents that are being applied.
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
    """Do something with rows, in its turn. It may be done twice, and must come to the same then."""
    return await asyncio.get_running_loop().run_in_executor(_thread(), _done, work)


async def let_go() -> None:
    """Close the connection. The next statement opens another one."""
    await asyncio.get_running_loop().run_in_executor(_thread(), _close)


@lru_cache(maxsize=1)
def _thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="rows")


def _close() -> None:
    connections[ALIAS].close()


def _done(work: Callable[[], T]) -> T:
    try:
        return work()
    except (InterfaceError, OperationalError):
        # A server that was restarted is noticed by the first statement afterwards.
        _close()
        return work()
