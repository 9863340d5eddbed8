"""The board: each endpoint's latency over time, and where it doubled."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]

#: An alert needs at least so many requests, and so many times the latency of the previous period.
LEAST_COUNT, TIMES = 5, 2.0


@dataclass(frozen=True, slots=True)
class Bucket:
    """One endpoint's five minutes."""

    at: str
    count: int
    latency_ms: float
    previous_ms: float | None
    is_alert: bool

    @classmethod
    def of(cls, row: Row) -> Bucket:
        before = row.get("previous") or {}
        latency, previous = float(row["latency"] or 0.0), before.get("latency")
        alert = (
            previous is not None
            and min(row["count"], before.get("count") or 0) >= LEAST_COUNT
            and latency >= TIMES * previous
        )
        return cls(row["at"], row["count"], latency, previous, alert)


@dataclass(slots=True)
class Series:
    """One endpoint's buckets, in order of time."""

    customer: str
    app: str
    endpoint: str
    buckets: list[Bucket] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.customer}/{self.app}{self.endpoint}"

    @property
    def alerts(self) -> list[Bucket]:
        return [bucket for bucket in self.buckets if bucket.is_alert]


def series_of(rows: Iterable[Row]) -> list[Series]:
    """Return endpoints by name."""
    series: dict[tuple[str, str, str], Series] = {}
    for row in sorted(rows, key=lambda row: str(row["at"])):
        key = (row["customer"], row["app"], row["endpoint"])
        series.setdefault(key, Series(*key)).buckets.append(Bucket.of(row))
    return [series[key] for key in sorted(series)]


def traffic_of(rows: Iterable[Row]) -> dict[str, list[int]]:
    """Return each customer's requests, bucket by bucket."""
    traffic: dict[str, list[int]] = {}
    for row in sorted(rows, key=lambda row: str(row["at"])):
        traffic.setdefault(row["customer"], []).append(row["count"])
    return dict(sorted(traffic.items()))
