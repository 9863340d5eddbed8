"""Carries the entries of write streams to views."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from uuid import UUID

from aggregates.following.streams import Track, WriteStreamEntry, WriteStreamReader
from aggregates.following.view import FollowedView
from documents.outbox.entries import Image, StreamEntryKind
from rillbase_native import QueryError
from storage_engine.node.wire import CommandRejected

#: How often positions without changes are sent to the node.
REPORT_S = 1.0
#: Rejections after which a new generation is started.
LOST = frozenset({"NO_AGGREGATE", "NOGENERATION"})
#: Rejections that are not about the view: the node cannot write at present.
_CANNOT_WRITE = frozenset({"STORAGE_FULL", "POISONED", "IO_ERROR", "CORRUPTION", "STOPPED"})


class NodeCannotWrite(OSError):
    """The storage node responds but cannot write."""


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
            await self._attempt(view, partial(self._advance, view))

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
        await asyncio.gather(
            *(self._attempt(v, partial(v.send_images, labels, positions)) for v in due)
        )

    async def _advance(self, view: FollowedView) -> None:
        """Start or finish a generation, if that is due."""
        if not view.is_failed:
            if view.wants_build:
                await view.begin()
            if self._is_complete(view):
                await view.finish_build(self._labels(), self._positions())

    def _is_complete(self, view: FollowedView) -> bool:
        """Return whether the generation that is being filled has all documents."""
        generation = view.next_generation
        return (
            generation is not None
            and generation.is_filled
            and all(track.has_all_up_to(generation.complete_at) for track in self._tracks)
        )

    async def _attempt(self, view: FollowedView, step: Callable[[], Awaitable[None]]) -> None:
        """Run a step for a view. An error in one view does not hold up the others."""
        try:
            await step()
        except CommandRejected as error:
            if error.code in LOST:
                view.current = None
                await view.abandon_build()
            elif error.code in _CANNOT_WRITE:
                raise NodeCannotWrite(error.code) from error
            else:
                await view.fail(f"The storage node rejected a command: {error.text}")
        except QueryError as error:
            await view.fail(f"A document cannot be evaluated: {error.detail}")
