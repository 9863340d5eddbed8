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
_AWAY = (psycopg.Error, DatabaseError, RedisError, ApiError, OSError)
#: Rejections after which a new generation is started.
_LOST = frozenset({"NO_AGGREGATE", "NOGENERATION"})
#: Rejections that are not about the view: the node cannot write at present.
_TROUBLED = frozenset({"STORAGE_FULL", "POISONED", "IO_ERROR", "CORRUPTION", "STOPPED"})


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
        self._asked = False
        self._away = ""
        self._health = ViewsHealth()

    @property
    def ready(self) -> bool:
        """Whether it follows, or stands by to take over."""
        return self._asked

    def status(self) -> dict[str, object]:
        """Describe the state, for operators and probes."""
        return {
            "leading": self._lead.held,
            "unavailable": self._away or None,
            "lag_s": self._health.lag_s,
            "views": {view.name: describe(view) for view in self._views.values()},
        }

    async def run(self) -> None:
        """Follow until cancelled."""
        try:
            await self._run()
        finally:
            await self._forget()
            await asyncio.to_thread(self._lead.end)
            await self._wire.aclose()

    async def _run(self) -> None:
        while True:
            try:
                if await asyncio.to_thread(self._lead.take):
                    self._asked = True
                    await self._follow()
                self._asked, self._away = True, ""
            except _AWAY as error:
                if self._away != type(error).__name__:
                    logger.warning("following is paused: %s", error)
                self._away = type(error).__name__
            except StreamGap as error:
                logger.info("views are rebuilt: %s", error)
            except Exception:
                logger.exception("following failed")
            self._health.pause(leads=self._lead.held)
            await self._forget()
            await asyncio.sleep(RETRY_S)

    async def _forget(self) -> None:
        views, self._views = self._views, {}
        for view in views.values():
            await view.forget_coming()

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
        cared_s = time.monotonic()
        while True:
            await updater.update()
            self._health.note(self._views.values())
            if time.monotonic() - cared_s > REFRESH_S:
                cared_s = time.monotonic()
                if await newest_grid() != grid or not await asyncio.to_thread(self._lead.take):
                    return
                await self._refresh_views()
                if not self._views:
                    return

    async def _refresh_views(self) -> None:
        """Refresh the list of views."""
        loaded = {row.pk: (row, there) for row, there in await asyncio.to_thread(load)}
        for removed in [key for key in self._views if key not in loaded]:
            await self._views.pop(removed).forget_coming()
        for key, (row, there) in loaded.items():
            view = self._views.setdefault(key, FollowedView(row))
            view.row = row
            if not there and not view.is_failed:
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
            places = []
            for view in self._views.values():
                place = _place_of(view, streams, partition)
                if place is None or order(place) < order(first):
                    view.current = None
                else:
                    places.append(place)
            tracks.append(Track(min(places, key=order, default=last)))
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


class NodeTroubled(OSError):
    """The storage node responds but cannot write."""


def _place_of(view: FollowedView, streams: WriteStreamReader, partition: int) -> str | None:
    """Return a view's position in a stream, if it knows exactly one incarnation of it."""
    if view.current is None:
        return None
    stem = streams.label(partition, b"")
    positions = view.current.positions
    places = [place for label, place in positions.items() if label.startswith(stem)]
    return places[0] if len(places) == 1 else None


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
        self._knows = False
        self._early: list[WriteStreamEntry] = []

    async def update(self) -> None:
        """Read once and process the result."""
        entries = await self._streams.read(self._tracks)
        for entry in entries:
            self._tracks[entry.partition].advance(entry.place, entry.content)
        if not self._knows:
            self._early += entries
            if any(track.incarnation is None for track in self._tracks):
                return
            self._learn()
            entries, self._early = self._early, []
        self._sort(entries)
        await self._send_changes()
        for view in list(self._views.values()):
            await self._attempt(view, self._advance(view))

    def _learn(self) -> None:
        """Compare the incarnations of the streams with those that views have followed."""
        self._knows = True
        labels = set(self._labels().values())
        for view in self._views.values():
            if view.current is not None and not labels <= set(view.current.positions):
                view.current = None

    def _labels(self) -> dict[int, str]:
        return {
            partition: self._streams.label(partition, track.incarnation or b"")
            for partition, track in enumerate(self._tracks)
        }

    def _places(self) -> dict[int, str]:
        return {partition: track.place for partition, track in enumerate(self._tracks)}

    def _sort(self, entries: Iterable[WriteStreamEntry]) -> None:
        """Note for each view the images that concern it."""
        watching: defaultdict[UUID, list[FollowedView]] = defaultdict(list)
        for view in self._views.values():
            if view.current is not None or view.coming is not None:
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
        places = self._places()
        reports = time.monotonic() - self._reported_s > REPORT_S
        if reports:
            self._reported_s = time.monotonic()
        due = [view for view in self._views.values() if reports or view.images]
        await asyncio.gather(*(self._attempt(v, v.carry(labels, places)) for v in due))

    async def _advance(self, view: FollowedView) -> None:
        """Start or finish a generation, if that is due."""
        if not view.is_failed:
            if view.wants_build:
                await view.begin()
            await view.settle(self._labels(), self._places())

    async def _attempt(self, view: FollowedView, step: Awaitable[None]) -> None:
        """Run a step for a view. An error in one view does not hold up the others."""
        try:
            await step
        except CommandRejected as error:
            if error.code in _LOST:
                view.current = None
                await view.forget_coming()
            elif error.code in _TROUBLED:
                raise NodeTroubled(error.code) from error
            else:
                await view.fail(f"The storage node rejected a command: {error.text}")
        except QueryError as error:
            await view.fail(f"A document cannot be evaluated: {error.detail}")
