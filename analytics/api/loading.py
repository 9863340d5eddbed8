"""Handlers loaded by the first call: the columnar libraries take 40 MB.

A server without dataset calls does not load them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from importlib import import_module

from data_plane.calls import Call
from data_plane.http import CallResponse


def loaded(module: str, name: str) -> Callable[[Call], Awaitable[CallResponse]]:
    """Return a handler of a module beside this one, which its first call loads."""

    async def handle(call: Call) -> CallResponse:
        there = await asyncio.to_thread(import_module, f"analytics.api.{module}")
        handler: Callable[[Call], Awaitable[CallResponse]] = getattr(there, name)
        return await handler(call)

    return handle
