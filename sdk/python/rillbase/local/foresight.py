"""What one live query shows of pending writes, and when it has caught up with them.

A query has caught up when the server has sent it the version that the write created, or a later
one. A write that does not concern the query causes no message: then silence while the query is live
proves it, since the server reports a lag sooner than that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

from rillbase.local.overlay import overlaid
from rillbase.local.pending import LocalWrites, UnconfirmedWrite
from rillbase.query import Spec
from rillbase.view import AnswerView, Change, Item

CAUGHT_UP_S = 3.0


class Foresight:
    """Applies pending writes to a view."""

    def __init__(
        self, spec: Spec, writes: LocalWrites, view: AnswerView, changed: Callable[[], None]
    ) -> None:
        self._spec = spec
        self._writes = writes
        self._view = view
        self._changed = changed
        self._is_live = False
        #: The newest received version of each document while writes are pending.
        self._seen_versions: dict[str, int] = {}
        self._graces: dict[UnconfirmedWrite, asyncio.TimerHandle] = {}

    def join(self) -> None:
        self._writes.join(self._spec.collection, self)

    def leave(self) -> None:
        self._stop_graces()
        self._writes.leave(self._spec.collection, self)

    def shown(self) -> Sequence[Item]:
        """Return the answer with the writes that this query has not caught up with."""
        pending = [
            one for one in self._present() if one.confirmation is None or self in one.waiting
        ]
        if not pending:
            return tuple(self._view.items)
        return tuple(overlaid(self._view.items, pending, self._spec))

    def apply(self, changes: Iterable[Change]) -> None:
        """Process changes from the server."""
        if not self._present():
            return
        for change in changes:
            self._seen_versions[change.item.key] = change.item.version or 0
        self.catch_up()

    def catch_up(self) -> None:
        """Release the writes that the view now includes."""
        for pending in list(self._present()):
            if pending.confirmation is not None and self._has_seen(pending):
                self._release(pending)

    def live(self, *, is_live: bool) -> None:
        """Record whether silence proves something. After each change, the query has to be silent
        again.
        """
        if is_live == self._is_live:
            return
        self._is_live = is_live
        self._stop_graces()
        for pending in self._present():
            if pending.confirmation is not None:
                self._start_grace(pending)

    # Called by the writes

    def pending_changed(self) -> None:
        if not self._present():
            self._seen_versions.clear()
        self._changed()

    def confirmed(self, pending: UnconfirmedWrite) -> None:
        if self._has_seen(pending):
            self._release(pending)
        else:
            self._start_grace(pending)
        self._changed()

    def _present(self) -> Sequence[UnconfirmedWrite]:
        return self._writes.of(self._spec.collection)

    def _has_seen(self, pending: UnconfirmedWrite) -> bool:
        item = next((item for item in self._view.items if item.key == pending.key), None)
        if pending.operation.kind == "delete":
            return self._view.has_result and item is None
        shown = -1 if item is None or item.version is None else item.version
        confirmed = None if pending.confirmation is None else pending.confirmation.version
        return (
            confirmed is not None
            and max(self._seen_versions.get(pending.key, -1), shown) >= confirmed
        )

    def _release(self, pending: UnconfirmedWrite) -> None:
        grace = self._graces.pop(pending, None)
        if grace is not None:
            grace.cancel()
        self._writes.release(pending, self)

    def _start_grace(self, pending: UnconfirmedWrite) -> None:
        if self._is_live and pending not in self._graces and self in pending.waiting:
            loop = asyncio.get_running_loop()
            self._graces[pending] = loop.call_later(CAUGHT_UP_S, self._release, pending)

    def _stop_graces(self) -> None:
        for grace in self._graces.values():
            grace.cancel()
        self._graces.clear()
