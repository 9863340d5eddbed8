"""Keeps the views of one backend's collections in step with the backend's write streams."""

from __future__ import annotations

import asyncio
import logging
import time
from uuid import UUID

import psycopg
from django.db import DatabaseError
from redis.exceptions import RedisError

from aggregates.following.health import ViewsHealth
from aggregates.following.streams import (
    StreamGap,
    Track,
    WriteStreamReader,
    newest_grid,
    order,
)
from aggregates.following.updater import LOST, ViewUpdater
from aggregates.following.view import FollowedView, load
from documents.backend import Backend
from foundation.environment import environment
from foundation.errors import ApiError
from foundation.valkey_wire import ValkeyWire
from storage_engine.node.wire import CommandRejected

logger = logging.getLogger(__name__)

CONNECT_TIMEOUT_S, ANSWER_TIMEOUT_S = 2.0, 10.0
#: How often the control plane is polled for views.
REFRESH_S = 0.5
#: The pause after a service was unavailable.
RETRY_S = 0.5
#: Transient errors: the service recovers, or another process follows meanwhile.
UNAVAILABLE = (psycopg.Error, DatabaseError, RedisError, ApiError, OSError)


class StreamFollower:
    """Follows the views of one backend while it is active."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._wire = ValkeyWire(
            environment().events,
            connect_timeout_s=CONNECT_TIMEOUT_S,
            answer_timeout_s=ANSWER_TIMEOUT_S,
        )
        #: Set while this process leads and the backend has views.
        self._active = asyncio.Event()
        self.views: dict[UUID, FollowedView] = {}
        self.unavailable = ""
        self.health = ViewsHealth()

    def set_active(self, *, active: bool) -> None:
        """Follow from now on, or stop soon."""
        if active:
            self._active.set()
        else:
            self._active.clear()

    async def run(self) -> None:
        """Follow until cancelled."""
        try:
            while True:
                if not self._active.is_set():
                    self.unavailable = ""
                    self.health.reset()
                    await self._active.wait()
                await self._attempt()
                await self._abandon_all()
                await asyncio.sleep(RETRY_S)
        finally:
            await self._abandon_all()
            await self._wire.aclose()

    async def _attempt(self) -> None:
        """Follow, and log why it ended."""
        try:
            await self._follow()
            self.unavailable = ""
        except UNAVAILABLE as error:
            if self.unavailable != type(error).__name__:
                logger.warning("following %s collections is paused: %s", self._backend, error)
            self.unavailable = type(error).__name__
        except StreamGap as error:
            logger.info("views of %s collections are rebuilt: %s", self._backend, error)
        except Exception:
            logger.exception("following %s collections failed", self._backend)

    async def _abandon_all(self) -> None:
        views, self.views = self.views, {}
        for view in views.values():
            await view.abandon_build()

    async def _follow(self) -> None:
        """Follow until the streams are replaced, or this follower is not active any more."""
        grid = await newest_grid(self._backend)
        await self._refresh_views()
        self.health.note(self.views.values())
        if grid is None or not self.views:
            return
        streams = WriteStreamReader(self._wire, grid)
        tracks = await self._tracks(streams)
        updater = ViewUpdater(streams, tracks, self.views)
        refreshed_s = time.monotonic()
        while self._active.is_set():
            await updater.update()
            self.health.note(self.views.values())
            if time.monotonic() - refreshed_s > REFRESH_S:
                refreshed_s = time.monotonic()
                if await newest_grid(self._backend) != grid:
                    return
                await self._refresh_views()

    async def _refresh_views(self) -> None:
        """Refresh the list of views."""
        rows = await asyncio.to_thread(load)
        loaded = {view.row.pk: view for view in rows if view.backend == self._backend}
        for removed in [key for key in self.views if key not in loaded]:
            await self.views.pop(removed).abandon_build()
        for key, (row, backend, collection_exists) in loaded.items():
            view = self.views.setdefault(key, FollowedView(row, backend))
            view.row = row
            if not collection_exists and not view.is_failed:
                await view.fail("The collection has been deleted.")

    async def _tracks(self, streams: WriteStreamReader) -> list[Track]:
        """Return the positions to read from, once every stream has an entry.

        Views whose positions still exist resume; the others then have no current generation.
        """
        await self._resume()
        tracks = []
        for partition in range(streams.grid.partitions):
            first, last = await streams.first(partition), await streams.last(partition)
            if first is None or last is None:
                raise NotTicking(f"stream {partition} is empty: no relay has initialised it")
            positions = []
            for view in self.views.values():
                position = _position_of(view, streams, partition)
                if position is None or order(position) < order(first):
                    view.current = None
                else:
                    positions.append(position)
            tracks.append(Track(min(positions, key=order, default=last)))
        return tracks

    async def _resume(self) -> None:
        """Find the generations that views had when they were last followed."""
        for view in self.views.values():
            if view.row.generation and not view.is_failed:
                try:
                    await view.resume()
                except CommandRejected as error:
                    if error.code not in LOST:
                        raise


class NotTicking(OSError):
    """No relay has written to the streams yet."""


def _position_of(view: FollowedView, streams: WriteStreamReader, partition: int) -> str | None:
    """Return a view's position in a stream, if it knows exactly one incarnation of it."""
    if view.current is None:
        return None
    stem = streams.label(partition, b"")
    labelled = view.current.positions.items()
    positions = [position for label, position in labelled if label.startswith(stem)]
    return positions[0] if len(positions) == 1 else None
