"""Reads and writes start over if what they rely on is no longer current."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from documents.store.facts import ConcurrentDefinitionChange

T = TypeVar("T")

ATTEMPTS = 5


class OutdatedCall(Exception):
    """The definition that a call was made with has been replaced, or its snapshot was closed."""


async def retried(attempt: Callable[[], Awaitable[T]]) -> T:
    """Repeat an attempt whose definition or snapshot is outdated."""
    for _ in range(ATTEMPTS):
        try:
            return await attempt()
        except OutdatedCall:
            continue
    raise ConcurrentDefinitionChange
