"""The state of views for probes, scrapers and people: whether in step, and how far behind."""

from __future__ import annotations

import datetime
import time
from collections import Counter
from collections.abc import Collection, Iterable

from aggregates.following.streams import order
from aggregates.following.view import FollowedView
from foundation import metrics
from foundation.api.rendering import timestamp
from foundation.json_types import JsonObject

STATES = ("in_step", "building", "waiting", "failed")


class ViewsHealth:
    """The health of a backend's views that a process follows."""

    def __init__(self) -> None:
        #: The time, in seconds since 1970, up to which the least recent view in step is complete;
        #: its last value while a service is unavailable. None: nothing is followed.
        self._as_of_s: float | None = None
        self._counts = Counter[str]()

    @property
    def lag_s(self) -> float | None:
        """Return how far behind the least recent view in step is; None: nothing is followed."""
        return None if self._as_of_s is None else round(max(0.0, time.time() - self._as_of_s), 3)

    def count(self, state: str) -> int:
        """Return the number of views in a state."""
        return self._counts[state]

    def note(self, views: Collection[FollowedView]) -> None:
        """Record the state of the views while they are followed."""
        self._counts = Counter(state_of(view) for view in views)
        times_s = [time_s for view in views if (time_s := as_of_s(view)) is not None]
        if times_s:
            self._as_of_s = min(times_s)
        elif self._counts.total() == self._counts["failed"]:
            self._as_of_s = None
        elif self._as_of_s is None:
            self._as_of_s = time.time()

    def reset(self) -> None:
        """Record that nothing is followed."""
        self._as_of_s, self._counts = None, Counter()


def measure(healths: Iterable[ViewsHealth], *, leads: bool) -> None:
    """Set the metrics of a process."""
    parts = list(healths)
    for state in STATES:
        metrics.VIEWS.labels(state).set(sum(part.count(state) for part in parts))
    metrics.VIEWS_LEADING.set(leads)
    metrics.VIEWS_LAG.set(max(part.lag_s or 0.0 for part in parts))


def state_of(view: FollowedView) -> str:
    """Return the state of a view."""
    if view.is_failed:
        return "failed"
    if view.next_generation is not None:
        return "building"
    return "waiting" if view.current is None else "in_step"


def as_of_s(view: FollowedView) -> float | None:
    """Return the time, in seconds since 1970, up to which a view's rows include all writes."""
    if view.current is None or not view.current.positions:
        return None
    return min(order(position)[0] for position in view.current.positions.values()) / 1000


def describe(view: FollowedView) -> JsonObject:
    """Return a view's state as shown to people."""
    moment = as_of_s(view)
    as_of = None if moment is None else datetime.datetime.fromtimestamp(moment, datetime.UTC)
    return {
        "state": state_of(view),
        "generation": view.row.generation or None,
        "building": None if view.next_generation is None else view.next_generation.number,
        "as_of": None if as_of is None else timestamp(as_of),
    }
