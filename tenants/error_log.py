"""The error log: a tenant's recent errors, shown to its members.

Recording must add no cost to a rejected call, and a client that is rejected a thousand times a
second must not fill a disk. So a process collects errors in memory, identical ones as one entry
with a count, and a background thread writes them every second: one row per kind of error and
minute, whichever processes recorded it. If a tenant has too many kinds of errors in one second, the
rest are counted under one code. A killed process loses at most its last second.

No credential is stored: details pass the same filter as log lines, and paths are those of routes,
in which a caller's own values appear only where they name a collection, a topic or an aggregate.
"""

from __future__ import annotations

import asyncio
import datetime
import hashlib
import json
import logging
import threading
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from django.db import DatabaseError, DataError, connections
from django.utils import timezone

from foundation import request_context
from foundation.errors import ApiError
from foundation.ids import uuid7
from foundation.redaction import shown
from foundation.ticker import Ticker
from tenants.log_texts import named_route, storable
from tenants.models import ErrorEntry

INTERVAL_S = 1.0
#: Maximum number of distinct kinds of errors per tenant and interval.
MAX_KINDS = 50
#: Beyond this number nothing is collected until a flush: the database has been unavailable for
#: long.
MAX_TENANTS = 10_000
MAX_DETAIL_CHARS = 500
MAX_NAME_CHARS = 200

Area = ErrorEntry.Area
logger = logging.getLogger(__name__)

_WRITE = """
INSERT INTO tenants_errorentry
  (id, tenant_id, area, code, status, place, detail, actor, request_id, count, at, last_at,
   fingerprint)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (tenant_id, fingerprint) DO UPDATE SET
  count = tenants_errorentry.count + EXCLUDED.count, last_at = EXCLUDED.last_at,
  detail = EXCLUDED.detail, request_id = EXCLUDED.request_id
"""


#: Parameters of the statement.
Row = tuple[UUID | str | int | datetime.datetime | bytes | None, ...]


@dataclass(frozen=True, slots=True)
class ErrorKey:
    """The key by which errors are grouped."""

    area: Area
    code: str
    status: int | None
    place: str
    actor: str


@dataclass(slots=True)
class ErrorCount:
    """Errors of one kind that are not yet written to the database."""

    count: int
    first: datetime.datetime
    last: datetime.datetime
    detail: str
    request_id: str


OTHERS = ErrorKey(Area.REQUEST, "more_errors", None, "", "")


class ErrorLog:
    """Errors that one process has recorded and not yet written."""

    def __init__(self, interval_s: float = INTERVAL_S) -> None:
        self._gathered: dict[UUID, dict[ErrorKey, ErrorCount]] = defaultdict(dict)
        self._lock = threading.Lock()
        self._flushing = threading.Lock()
        self._ticker = Ticker("error log", interval_s, self.flush)

    def note(
        self,
        tenant_id: UUID,
        area: Area,
        code: str,
        *,
        place: str,
        detail: str = "",
        status: int | None = None,
        actor: str | None = None,
    ) -> None:
        """Record an error of a tenant. Its actor is the current caller unless one is given."""
        now = timezone.now()
        actor_text = request_context.principal.get() if actor is None else actor
        kind = ErrorKey(
            area,
            code,
            status,
            storable(shown(place), MAX_NAME_CHARS),
            storable(actor_text, MAX_NAME_CHARS),
        )
        text = storable(shown(detail), MAX_DETAIL_CHARS)
        with self._lock:
            self._gather(tenant_id, kind, ErrorCount(1, now, now, text, _request_id()))
        self._ticker.begin()

    def flush(self) -> int:
        """Write the collected errors; keep them if the database is unavailable.

        When this returns, errors that another thread has been writing are written as well.
        """
        with self._flushing:
            return self._flush()

    def _flush(self) -> int:
        with self._lock:
            errors, self._gathered = self._gathered, defaultdict(dict)
        rows = [
            _row(tenant_id, kind, entry)
            for tenant_id, kinds in errors.items()
            for kind, entry in kinds.items()
        ]
        # The same order in all processes, to avoid deadlocks.
        rows.sort(key=lambda row: (row[1], row[-1]))
        if not rows:
            return 0
        try:
            with connections["relay"].cursor() as cursor:
                cursor.executemany(_WRITE, rows)
        except DataError as unstorable:
            # It would be rejected again, together with every error recorded from here on.
            logger.error(  # noqa: TRY400 -- the reason is in the message
                "%d errors could not be written and are dropped: %s", len(rows), unstorable
            )
            return 0
        except DatabaseError as error:
            logger.warning("errors could not be written and are kept for later: %s", error)
            self._restore(errors)
            return 0
        finally:
            connections["relay"].close()
        return len(rows)

    def stop(self) -> None:
        """Flush and stop the thread."""
        self._ticker.stop()

    def _restore(self, errors: Mapping[UUID, Mapping[ErrorKey, ErrorCount]]) -> None:
        with self._lock:
            for tenant_id, kinds in errors.items():
                for kind, entry in kinds.items():
                    self._gather(tenant_id, kind, entry)

    def _gather(self, tenant_id: UUID, kind: ErrorKey, entry: ErrorCount) -> None:
        if tenant_id not in self._gathered and len(self._gathered) >= MAX_TENANTS:
            return
        kinds = self._gathered[tenant_id]
        if kind not in kinds and len(kinds) >= MAX_KINDS:
            kind, entry.detail, entry.request_id = OTHERS, "", ""
        total = kinds.setdefault(kind, entry)
        if total is not entry:
            total.count += entry.count
            total.first = min(total.first, entry.first)
            if entry.last >= total.last:
                total.last, total.detail = entry.last, entry.detail
                total.request_id = entry.request_id


def _request_id() -> str:
    return storable(request_context.request_id.get(), 64)


def _row(tenant_id: UUID, kind: ErrorKey, entry: ErrorCount) -> Row:
    minute = entry.first.replace(second=0, microsecond=0).isoformat()
    equal = [kind.area, kind.code, kind.status, kind.place, kind.actor, minute]
    fingerprint = hashlib.sha256(json.dumps(equal).encode()).digest()
    return (
        uuid7(),
        tenant_id,
        kind.area.value,
        kind.code,
        kind.status,
        kind.place,
        entry.detail,
        kind.actor,
        entry.request_id,
        entry.count,
        entry.first,
        entry.last,
        fingerprint,
    )


_log = ErrorLog()
note = _log.note
flush = _log.flush
stop = _log.stop


async def aclose() -> None:
    """Flush when an event loop ends."""
    await asyncio.to_thread(stop)


def note_refusal(
    error: ApiError, place: str, parameters: Mapping[str, str] | None = None
) -> ApiError:
    """Record a rejection for the tenant in scope, if there is one; return it.

    `place` is the call, with the names of its path parameters in braces or angle brackets. An error
    that passes through several handlers is recorded once.
    """
    request_context.error_code.set(error.code)
    tenant = request_context.tenant_id.get()
    if not tenant or error.is_noted:
        return error
    note_error(UUID(tenant), Area.REQUEST, error, place=named_route(place, parameters or {}))
    return error


def note_error(
    tenant_id: UUID, area: Area, error: ApiError, *, place: str, actor: str | None = None
) -> None:
    """Record an error reported to a tenant's caller or subscriber."""
    error.is_noted = True
    message = _message_of(error)
    note(tenant_id, area, error.code, place=place, detail=message, status=error.status, actor=actor)


def _message_of(error: ApiError) -> str:
    """Return the message with each invalid field on a separate line, without duplicates."""
    places = [": ".join(filter(None, (p.pointer, p.detail))) for p in error.errors]
    if not places:
        return error.detail or error.title
    repeats = error.detail in ("", *(problem.detail for problem in error.errors))
    return "\n".join(places if repeats else [error.detail, *places])


def note_dead_task(tenant_id: UUID, name: str, attempts: int) -> None:
    """Record that a tenant's task failed permanently, without its message, which is for staff."""
    detail = f"Failed after {attempts} attempts. Staff can see why and run it again."
    note(tenant_id, Area.TASK, "task_failed", place=name, detail=detail)
