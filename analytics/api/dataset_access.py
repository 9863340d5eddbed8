"""Shared code of the dataset calls.

Reading and writing columns takes long and mostly releases Python's global lock. It runs in separate
threads, few enough to bound their memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

from django.db import connections

from analytics import facts
from analytics.facts import DatasetFacts
from data_plane.calls import Call
from data_plane.http.body import ClientGone
from foundation.scope import scoped

T = TypeVar("T")

AT_ONCE = 4


async def dataset_of(call: Call, scope: str) -> DatasetFacts:
    """Return the dataset in the path, or raise if the caller lacks the scope."""
    facts.allow(call.principal, scope)
    limit = call.tenant.limits["dataset_bytes"]
    name = call.parameters["dataset"]
    return await in_scope(call, lambda: facts.facts_of(facts.find(name), limit))


async def in_scope(call: Call, work: Callable[[], T]) -> T:
    """Run `work` in one transaction of the caller's tenant."""

    def run() -> T:
        try:
            with scoped(tenant_id=call.tenant.id, user_id=call.principal.user_id):
                return work()
        finally:
            connections["default"].close()

    return await asyncio.to_thread(run)


async def while_connected(call: Call, work: Coroutine[None, None, T]) -> T:
    """Await `work`; cancel it and raise `ClientGone` if the caller disconnects."""
    task, closed = asyncio.ensure_future(work), asyncio.ensure_future(call.body.closed())
    try:
        await asyncio.wait({task, closed}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientGone
        return task.result()
    finally:
        for unfinished in (task, closed):
            unfinished.cancel()
        await asyncio.wait({task, closed})


async def in_thread(work: Callable[[], T]) -> T:
    """Run slow `work` that needs no database in a thread."""
    return await asyncio.get_running_loop().run_in_executor(_threads(), work)


@lru_cache(maxsize=1)
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(AT_ONCE, thread_name_prefix="columns")
