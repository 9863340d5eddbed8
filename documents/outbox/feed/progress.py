"""How far the feed has published the log, as any process can read it."""

from __future__ import annotations

from documents.backend import Backend
from documents.outbox.events import EventLayer
from documents.outbox.feed.publisher import FeedCursor, NodeLogStatus
from documents.outbox.feed.servers import administrator, as_log_status
from foundation.valkey_wire import ValkeyWire
from storage_engine.node.refusals import as_api_error, unavailable
from storage_engine.node.wire import CommandRejected, NodeUnavailable


async def published_position(events: ValkeyWire, installation: int) -> int | None:
    """Return the position of the log up to which the streams are complete; None: the feed has not
    sent a tick to these streams, or will replace them.

    Raises `RedisError`, or `Unavailable` without the storage node.
    """
    # Before the node's run: the position is not beyond the end of the log that is read after it.
    status = await EventLayer(events, installation, Backend.NATIVE).read_status()
    cursor = FeedCursor.parse(status.cursor)
    if cursor is None or not cursor.is_valid(await _log_status(), status):
        return None
    return cursor.position


async def _log_status() -> NodeLogStatus:
    try:
        node = await administrator()
        try:
            return as_log_status(await node.call("RB.FEED.INFO"))
        finally:
            node.close()
    except NodeUnavailable:
        raise unavailable() from None
    except CommandRejected as error:
        raise as_api_error(error) from None
