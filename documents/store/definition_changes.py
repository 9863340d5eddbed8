"""Reads and writes start over if the definition of their collection changes meanwhile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from documents.store.facts import ConcurrentDefinitionChange

T = TypeVar("T")

ATTEMPTS = 5


class DefinitionChanged(Exception):
    """A call was made with another definition than the current one, which is known now."""


async def retried(attempt: Callable[[], Awaitable[T]]) -> T:
    """Repeat an attempt that meets a change of a definition."""
    for _ in range(ATTEMPTS):
        try:
            return await attempt()
        except DefinitionChanged:
            continue
    raise ConcurrentDefinitionChange
