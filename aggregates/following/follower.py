"""The service: leads, and runs a follower for each backend whose collections have views.

Several processes may run; the one that holds a PostgreSQL advisory lock follows. If two briefly
believe that they hold it, no harm is done, since the node skips versions that it has seen. The
backends' streams are followed separately: while those of one are interrupted, the others' views
stay in step.
"""

from __future__ import annotations

import asyncio
import logging

from aggregates.following.health import describe, measure
from aggregates.following.stream_follower import REFRESH_S, UNAVAILABLE, StreamFollower
from aggregates.following.view import load
from documents.backend import Backend
from foundation.lead import Lead

logger = logging.getLogger(__name__)


class ViewFollower:
    """Follows views; one per event loop."""

    def __init__(self) -> None:
        self._lead = Lead("views")
        self._followers = {backend: StreamFollower(backend) for backend in Backend}
        self._has_checked = False
        self._unavailable = ""

    @property
    def ready(self) -> bool:
        """Whether it follows, or stands by to take over."""
        return self._has_checked

    def status(self) -> dict[str, object]:
        """Describe the state, for operators and probes."""
        followers = self._followers.values()
        reasons = [self._unavailable, *(follower.unavailable for follower in followers)]
        lags_s = [follower.health.lag_s for follower in followers]
        views = [view for follower in followers for view in follower.views.values()]
        return {
            "leading": self._lead.is_leader,
            "unavailable": next(filter(None, reasons), None),
            "lag_s": max((lag_s for lag_s in lags_s if lag_s is not None), default=None),
            "views": {view.name: describe(view) for view in views},
        }

    async def run(self) -> None:
        """Follow until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for backend, follower in self._followers.items():
                    tasks.create_task(follower.run(), name=f"views of {backend} collections")
                while True:
                    await self._refresh()
                    await asyncio.sleep(REFRESH_S)
        finally:
            await asyncio.to_thread(self._lead.end)

    async def _refresh(self) -> None:
        """Take or check the lead, and start and stop followers."""
        backends = set[Backend]()
        try:
            if await asyncio.to_thread(self._lead.take):
                self._has_checked = True
                backends = {view.backend for view in await asyncio.to_thread(load)}
            self._has_checked, self._unavailable = True, ""
        except UNAVAILABLE as error:
            if self._unavailable != type(error).__name__:
                logger.warning("following is paused: %s", error)
            self._unavailable = type(error).__name__
        except Exception:
            logger.exception("following failed")
        for backend, follower in self._followers.items():
            follower.set_active(active=backend in backends)
        healths = [follower.health for follower in self._followers.values()]
        measure(healths, leads=self._lead.is_leader)
