"""The servers of the feed: the storage node, as its administrator, and the event layer."""

from __future__ import annotations

from collections.abc import Sequence
from struct import unpack
from typing import cast

from redis.exceptions import RedisError

from documents.backend import Backend
from documents.outbox.entries import TransactionSnapshot, encode_tick_body
from documents.outbox.events import (
    AppendResult,
    AppendVerdict,
    EntryGroup,
    EventLayer,
    EventLayerStatus,
    PackedGroup,
)
from documents.outbox.feed.publisher import (
    ChangesTruncated,
    FeedCursor,
    FeedInterrupted,
    LogChanges,
    NodeLogStatus,
)
from foundation import metrics
from foundation.resp_pipeline import Argument
from foundation.valkey_wire import ValkeyWire
from storage_engine.node.access import access
from storage_engine.node.client import CONNECT_TIMEOUT_S, new_wire
from storage_engine.node.publication import member, number
from storage_engine.node.wire import CommandRejected, NodeUnavailable, Reply, Wire

_HASH_BYTES = 4


class ConnectedServers:
    """The connections of one run of the feed."""

    def __init__(self, events: ValkeyWire, installation: int, token: int, epochs: str) -> None:
        self._layer = EventLayer(events, installation, Backend.NATIVE)
        self._token = token
        self._epochs = epochs
        self._node: Wire | None = None

    def close(self) -> None:
        """Close the connection to the node."""
        if self._node is not None:
            self._node.close()

    async def log_status(self) -> NodeLogStatus:
        return as_log_status(await self._call("RB.FEED.INFO"))

    async def changes(self, after: int, released: int, wait_ms: int) -> LogChanges:
        try:
            reply = await self._call("RB.FEED.READ", after, "RELEASE", released, "BLOCK", wait_ms)
        except CommandRejected as error:
            if error.code == "TRUNCATED":
                raise ChangesTruncated from None
            raise
        groups = cast("list[tuple[int, bytes, bytes]]", member(reply, b"groups"))
        return LogChanges(
            number(reply, b"position"),
            [PackedGroup(size, images, _hashes(hashes)) for size, hashes, images in groups],
            number(reply, b"lag_ms"),
        )

    async def event_status(self) -> EventLayerStatus:
        try:
            return await self._layer.read_status()
        except RedisError as error:
            raise _event_layer_failed(error) from None

    async def install(self, replaced: str | None) -> AppendResult:
        try:
            return await self._layer.install(self._token, self._epochs, replaced=replaced)
        except RedisError as error:
            raise _event_layer_failed(error) from None

    async def append(
        self, stamp_us: int, groups: Sequence[EntryGroup | PackedGroup]
    ) -> AppendResult:
        try:
            result = await self._layer.append(stamp_us, self._token, groups)
        except RedisError as error:
            raise _event_layer_failed(error) from None
        if result.verdict is AppendVerdict.OK:
            metrics.FEED_PUBLISHED.inc(sum(group.size for group in groups))
        return result

    async def tick(
        self, stamp_us: int, status: EventLayerStatus, cursor: FeedCursor
    ) -> AppendResult:
        snapshot = TransactionSnapshot.up_to(cursor.position)
        body = encode_tick_body(self._token, cursor.incarnation, snapshot)
        try:
            result = await self._layer.tick(
                stamp_us, self._token, status, cursor.incarnation, body, str(cursor)
            )
        except RedisError as error:
            raise _event_layer_failed(error) from None
        if result.verdict is AppendVerdict.OK:
            metrics.FEED_TICKS.inc()
        return result

    async def _call(self, *command: Argument) -> Reply:
        try:
            if self._node is None or self._node.closed:
                self._node = await administrator()
            return await self._node.call(*command)
        except NodeUnavailable as error:
            raise FeedInterrupted(f"the storage node is unavailable: {error}") from None


def as_log_status(reply: Reply) -> NodeLogStatus:
    """Parse the reply to `RB.FEED.INFO`."""
    previous = cast("bytes | None", member(reply, b"previous_run"))
    closed_at = cast("int | None", member(reply, b"previous_sequence"))
    return NodeLogStatus(
        cast("bytes", member(reply, b"run")).decode(),
        number(reply, b"sequence"),
        None if previous is None else previous.decode(),
        closed_at,
    )


async def administrator() -> Wire:
    """Return a new connection to the node, as its administrator."""
    credentials = access()
    wire = new_wire()
    await wire.open(credentials.parts, credentials.administrator(), CONNECT_TIMEOUT_S)
    return wire


def _hashes(packed: bytes) -> list[int] | None:
    """Return the hashes of an atomic batch; None: there is none."""
    count = len(packed) // _HASH_BYTES
    return list(unpack(f">{count}I", packed)) if packed else None


def _event_layer_failed(error: RedisError) -> FeedInterrupted:
    return FeedInterrupted(f"the event layer is unavailable: {error}")
