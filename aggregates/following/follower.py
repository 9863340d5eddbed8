"""The main loop: reads the streams and sends each view's changes to the storage node.

Several processes may run; the one that holds a PostgreSQL advisory lock follows. If two briefly
believe that they hold it, no harm is done, since the node skips versions that it has seen.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Awaitable, Iterable
from uuid import UUID

import psycopg
from django.db import DatabaseError
from redis.exceptions import RedisError

from aggregates.following.health import ViewsHealth, describe
from aggregates.following.streams import (
    StreamGap,
    Track,
    WriteStreamEntry,
    WriteStreamReader,
    newest_grid,
    order,
)
from aggregates.following.view import FollowedView, load
from documents.outbox.entries import Image, StreamEntryKind
from foundation.environment import environment
from foundation.errors import ApiError
from foundation.lead import Lead
from foundation.valkey_wire import ValkeyWire
from rillbase_native import QueryError
from storage_engine.node.wire import CommandRejected

logger = logging.getLogger(__name__)

CONNECT_TIMEOUT_S, ANSWER_TIMEOUT_S = 2.0, 10.0
#: How often the control plane is polled for views, and positions without changes are sent to the
#: node.
REFRESH_S = 0.5
REPORT_S = 1.0
#: The pause after a service was unavailable.
RETRY_S = 0.5
#: Transient errors: the service recovers, or another process follows meanwhile.
_UNAVAILABLE = (psycopg.Error, DatabaseError, RedisError, ApiError, OSError)
#: Rejections after which a new generation is started.
_LOST = frozenset({"NO_AGGREGATE", "NOGENERATION"})
#: Rejections that are not about the view: the node cannot write at present.
_CANNOT_WRITE = frozenset({"STORAGE_FULL", "POISONED", "IO_ERROR", "CORRUPTION", "STOPPED"})


class ViewFollower:
    """Follows views; one per event loop."""

    def __init__(self) -> None:
        self._wire = ValkeyWire(
            environment().events,
            connect_timeout_s=CONNECT_TIMEOUT_S,
            answer_timeout_s=ANSWER_TIMEOUT_S,
        )
        self._lead = Lead("views")
        self._views: dict[UUID, FollowedView] = {}
        self._has_checked = False
        self._unavailable = ""
        self._health = ViewsHealth()

    @property
    def ready(self) -> bool:
        """Whether it follows, or stands by to take over."""
        return self._has_checked

    def status(self) -> dict[str, object]:
        """Describe the state, for operators and probes."""
        return {
            "leading": self._lead.is_leader,
            "unavailable": self._unavailable or None,
            "lag_s": self._health.lag_s,
            "views": {view.name: describe(view) for view in self._views.values()},
        }

    async def run(self) -> None:
        """Follow until cancelled."""
        try:
            await self._run()
        finally:
            await self._abandon_all()
            await asyncio.to_thread(self._lead.end)
            await self._wire.aclose()

    async def _run(self) -> None:
        while True:
            try:
                if await asyncio.to_thread(self._lead.take):
                    self._has_checked = True
                    await self._follow()
                self._has_checked, self._unavailable = True, ""
            except _UNAVAILABLE as error:
                if self._unavailable != type(error).__name__:
                    logger.warning("following is paused: %s", error)
                self._unavailable = type(error).__name__
            except StreamGap as error:
                logger.info("views are rebuilt: %s", error)
            except Exception:
                logger.exception("following failed")
            self._health.pause(leads=self._lead.is_leader)
            await self._abandon_all()
            await asyncio.sleep(RETRY_S)

    async def _abandon_all(self) -> None:
        views, self._views = self._views, {}
        for view in views.values():
            await view.abandon_build()

    async def _follow(self) -> None:
        """Follow until the streams are replaced, no views are left, or another process follows."""
        grid = await newest_grid()
        await self._refresh_views()
        self._health.note(self._views.values())
        if grid is None or not self._views:
            return
        streams = WriteStreamReader(self._wire, grid)
        tracks = await self._tracks(streams)
        updater = ViewUpdater(streams, tracks, self._views)
        refreshed_s = time.monotonic()
        while True:
            await updater.update()
            self._health.note(self._views.values())
            if time.monotonic() - refreshed_s > REFRESH_S:
                refreshed_s = time.monotonic()
                if await newest_grid() != grid or not await asyncio.to_thread(self._lead.take):
                    return
                await self._refresh_views()
                if not self._views:
                    return

    async def _refresh_views(self) -> None:
        """Refresh the list of views."""
        loaded = {
            row.pk: (row, collection_exists)
            for row, collection_exists in await asyncio.to_thread(load)
        }
        for removed in [key for key in self._views if key not in loaded]:
            await self._views.pop(removed).abandon_build()
        for key, (row, collection_exists) in loaded.items():
            view = self._views.setdefault(key, FollowedView(row))
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
            for view in self._views.values():
                position = _position_of(view, streams, partition)
                if position is None or order(position) < order(first):
                    view.current = None
                else:
                    positions.append(position)
            tracks.append(Track(min(positions, key=order, default=last)))
        return tracks

    async def _resume(self) -> None:
        """Find the generations that views had when they were last followed."""
        for view in self._views.values():
            if view.row.generation and not view.is_failed:
                try:
                    await view.resume()
                except CommandRejected as error:
                    if error.code not in _LOST:
                        raise


class NotTicking(OSError):
    """No relay has written to the streams yet."""


class NodeCannotWrite(OSError):
    """The storage node responds but cannot write."""


def _position_of(view: FollowedView, streams: WriteStreamReader, partition: int) -> str | None:
    """Return a view's position in a stream, if it knows exactly one incarnation of it."""
    if view.current is None:
        return None
    stem = streams.label(partition, b"")
    labelled = view.current.positions.items()
    positions = [position for label, position in labelled if label.startswith(stem)]
    return positions[0] if len(positions) == 1 else None


class ViewUpdater:
    """Reads new entries and carries them to the views, repeatedly."""

    def __init__(
        self, streams: WriteStreamReader, tracks: list[Track], views: dict[UUID, FollowedView]
    ) -> None:
        self._streams = streams
        self._tracks = tracks
        self._views = views
        self._reported_s = 0.0
        #: Whether every stream has had a tick, so that its incarnation is known.
        self._has_incarnations = False
        self._early: list[WriteStreamEntry] = []

    async def update(self) -> None:
        """Read once and process the result."""
        entries = await self._streams.read(self._tracks)
        for entry in entries:
            self._tracks[entry.partition].advance(entry.position, entry.content)
        if not self._has_incarnations:
            self._early += entries
            if any(track.incarnation is None for track in self._tracks):
                return
            self._check_incarnations()
            entries, self._early = self._early, []
        self._assign_images(entries)
        await self._send_changes()
        for view in list(self._views.values()):
            await self._attempt(view, self._advance(view))

    def _check_incarnations(self) -> None:
        """Compare the incarnations of the streams with those that views have followed."""
        self._has_incarnations = True
        labels = set(self._labels().values())
        for view in self._views.values():
            if view.current is not None and not labels <= set(view.current.positions):
                view.current = None

    def _labels(self) -> dict[int, str]:
        return {
            partition: self._streams.label(partition, track.incarnation or b"")
            for partition, track in enumerate(self._tracks)
        }

    def _positions(self) -> dict[int, str]:
        return {partition: track.position for partition, track in enumerate(self._tracks)}

    def _assign_images(self, entries: Iterable[WriteStreamEntry]) -> None:
        """Note for each view the images that concern it."""
        watching: defaultdict[UUID, list[FollowedView]] = defaultdict(list)
        for view in self._views.values():
            if view.current is not None or view.next_generation is not None:
                watching[view.collection_id].append(view)
        for entry in entries:
            image = entry.content
            if not isinstance(image, Image) or image.kind is StreamEntryKind.SUPERSEDED:
                continue
            body = image.body if image.kind is StreamEntryKind.PUT else None
            for view in watching.get(image.collection_id, ()):
                view.images.setdefault(entry.partition, []).append((image.key, image.version, body))

    async def _send_changes(self) -> None:
        """Send changes to the node at once, and positions without changes now and then."""
        labels = self._labels()
        positions = self._positions()
        is_report_due = time.monotonic() - self._reported_s > REPORT_S
        if is_report_due:
            self._reported_s = time.monotonic()
        due = [view for view in self._views.values() if is_report_due or view.images]
        await asyncio.gather(*(self._attempt(v, v.send_images(labels, positions)) for v in due))

    async def _advance(self, view: FollowedView) -> None:
        """Start or finish a generation, if that is due."""
        if not view.is_failed:
            if view.wants_build:
                await view.begin()
            await view.finish_build(self._labels(), self._positions())

    async def _attempt(self, view: FollowedView, step: Awaitable[None]) -> None:
        """Run a step for a view. An error in one view does not hold up the others."""
        try:
            await step
        except CommandRejected as error:
            if error.code in _LOST:
                view.current = None
                await view.abandon_build()
            elif error.code in _CANNOT_WRITE:
                raise NodeCannotWrite(error.code) from error
            else:
                await view.fail(f"The storage node rejected a command: {error.text}")
        except QueryError as error:
            await view.fail(f"A document cannot be evaluated: {error.detail}")
