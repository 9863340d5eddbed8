"""Handlers that the first call loads, since the columnar libraries take 40 MB."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from importlib import import_module

from data_plane.calls import Call
from data_plane.http import CallResponse


def loaded(module: str, name: str) -> Callable[[Call], Awaitable[CallResponse]]:
    """Return a handler in a sibling module, which the first call imports."""

    async def handle(call: Call) -> CallResponse:
        module_name = await asyncio.to_thread(import_module, f"analytics.api.{module}")
        handler: Callable[[Call], Awaitable[CallResponse]] = getattr(module_name, name)
        return await handler(call)

    return handle
