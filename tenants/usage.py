"""Metering: each tenant's usage, counted in memory and written every few seconds.

Counting must add no cost to a request, so a process adds up in a dictionary and a background thread
writes one sample per tenant and interval. A killed process loses at most that interval. A Celery
task rolls samples up into hours, and writes and events into minutes as well.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from uuid import UUID

from django.db import DatabaseError, connections
from django.utils import timezone

from foundation.ticker import Ticker
from tenants.models import UsageSample

INTERVAL_S = 10.0
#: Metrics that are also added up by minute (`tenants.sweeps.usage_roll_up`).
DOCUMENT_WRITES, LIVE_EVENTS = "document_writes", "live_events"

logger = logging.getLogger(__name__)


class Meter:
    """Counters of one process, by tenant and metric."""

    def __init__(self) -> None:
        self._counts: dict[UUID, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self._lock = threading.Lock()
        self._ticker = Ticker("usage", INTERVAL_S, self.flush)

    def count(self, tenant_id: UUID, metric: str, amount: int = 1) -> None:
        """Add to a metric. The first count starts the writing thread."""
        with self._lock:
            self._counts[tenant_id][metric] += amount
        self._ticker.begin()

    def flush(self) -> int:
        """Write the counters; keep them for the next time if the database is unavailable."""
        with self._lock:
            flushed, self._counts = self._counts, defaultdict(lambda: defaultdict(int))
        if not flushed:
            return 0
        now = timezone.now()
        samples = [UsageSample(tenant_id=t, at=now, amounts=dict(a)) for t, a in flushed.items()]
        try:
            UsageSample.objects.using("relay").bulk_create(samples)
        except DatabaseError as error:
            logger.warning("usage could not be written and is kept for later: %s", error)
            self._restore(flushed)
            return 0
        finally:
            connections["relay"].close()
        return len(samples)

    def stop(self) -> None:
        """Flush and stop the thread."""
        self._ticker.stop()

    def _restore(self, flushed: dict[UUID, dict[str, int]]) -> None:
        with self._lock:
            for tenant_id, amounts in flushed.items():
                for metric, amount in amounts.items():
                    self._counts[tenant_id][metric] += amount


_meter = Meter()
count = _meter.count
flush = _meter.flush
stop = _meter.stop
