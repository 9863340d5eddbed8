"""Publishes right after the commit, in the process that wrote.

A writer never waits for the event layer and never fails with it: what cannot be queued immediately
is dropped here, since it is in the outbox and the relay publishes it.

A writer calls `stamp` before it sends its COMMIT and `offer` afterwards. The stamp is Valkey's time
as this process estimates it; the event layer rejects old ones. So a writer that was paused anywhere
between commit and publish cannot publish an outdated image.

Only processes that serve publish. In others, Celery's workers for example, an event loop lives as
long as one task, and the relay publishes everything.
"""

from __future__ import annotations

import asyncio

from documents.outbox.after_images import CommittedTransaction
from documents.outbox.database import close_relay_pool
from documents.outbox.loop_publisher import LoopPublisher
from foundation.per_loop import PerLoop


def _publisher_of_loop() -> LoopPublisher:
    publisher = LoopPublisher(asyncio.get_running_loop())
    publisher.start()
    return publisher


_publishers = PerLoop(_publisher_of_loop)


class _Process:
    """Whether this process publishes."""

    publishes = False


def publish_from_here() -> None:
    """Enable publishing in this process."""
    _Process.publishes = True


def stamp() -> int | None:
    """Return the stamp for a transaction that is about to commit; None: the relay publishes it."""
    if not _Process.publishes:
        return None
    return _publishers.get().stamp()


def offer(stamp_us: int | None, transaction: CommittedTransaction) -> None:
    """Queue everything that one transaction wrote, after its commit. Returns immediately."""
    if (publisher := _publishers.existing()) is not None:
        publisher.offer(stamp_us, transaction)


async def close() -> None:
    """Stop publishing from the running loop."""
    if (publisher := _publishers.pop()) is not None:
        await publisher.close()
        await close_relay_pool()
