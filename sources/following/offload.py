"""Rows are converted on the event loop, unless there is so much of them that others would wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

#: What is converted in a few milliseconds.
MAX_BYTES = 256 * 1024
T = TypeVar("T")


async def converted(size: int, work: Callable[[], T]) -> T:
    """Return what pure work on so many bytes makes; large work runs on a thread."""
    return work() if size <= MAX_BYTES else await asyncio.to_thread(work)
