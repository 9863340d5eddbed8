"""Publishes right after the commit, in the process that wrote.

A writer never waits for the event layer and never fails with it: what cannot be taken at once is
dropped here, since the outbox has it and the relay publishes it.

A writer calls `stamp` before it sends its COMMIT and `offer` afterwards. The stamp is Valkey's
time as this process estimates it; the event layer refuses old ones. So a writer that was paused
anywhere between commit and publish cannot publish an image that others have long outrun.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol
from weakref import WeakKeyDictionary

from documents.outbox.images import CommittedWrites


class Publishing(Protocol):
    """The publisher of one event loop."""

    def stamp(self) -> int | None:
        """Return Valkey's time in microseconds, never ahead of it; None: not known."""

    def offer(self, stamp_us: int, transaction: Sequence[CommittedWrites]) -> None:
        """Take a transaction's writes to publish them, or drop them."""


_publishers: WeakKeyDictionary[asyncio.AbstractEventLoop, Publishing] = WeakKeyDictionary()


def stamp() -> int | None:
    """Return the stamp for a transaction that is about to commit; None: the relay publishes it."""
    publisher = _publishers.get(asyncio.get_running_loop())
    return None if publisher is None else publisher.stamp()


def offer(stamp_us: int | None, transaction: Sequence[CommittedWrites]) -> None:
    """Hand over everything that one transaction wrote, after its commit. Returns at once."""
    publisher = _publishers.get(asyncio.get_running_loop())
    if publisher is not None and stamp_us is not None:
        publisher.offer(stamp_us, transaction)
