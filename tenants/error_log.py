"""The error log: what went wrong for a tenant, for its members to see.

To be noted must cost a refused call nothing, and a client that is refused a thousand times a
second must fill no disk. So a process gathers errors in memory, equal ones as one with a count,
and a thread of its own writes them down every second: one row for each kind of error and minute,
whichever processes met it. Of a tenant with more kinds of errors than that in one second, the rest
are counted under one code. A killed process loses at most its last second.

What is kept holds no credential: details go through the filter that log lines go through, and
addresses are those of routes, in which what callers chose themselves is named only where it is the
name of a collection, a topic or an aggregate.
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
from tenants.models import ErrorEntry

INTERVAL_S = 1.0
#: Kinds of errors of one tenant that are told apart in one interval.
MAX_KINDS = 50
#: Beyond these nothing is gathered until they are written: the database has been away for long.
MAX_TENANTS = 10_000
MAX_DETAIL_CHARS = 500
MAX_NAME_CHARS = 200
SHOWN_PARAMETERS = frozenset({"collection", "topic", "aggregate", "tenant"})

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


#: What is given to the statement.
Row = tuple[UUID | str | int | datetime.datetime | bytes | None, ...]


@dataclass(frozen=True, slots=True)
class Kind:
    """What makes errors equal."""

    area: Area
    code: str
    status: int | None
    place: str
    actor: str


@dataclass(slots=True)
class ErrorCount:
    """Errors of one kind that are not written to the database yet."""

    count: int
    first: datetime.datetime
    last: datetime.datetime
    detail: str
    request_id: str


OTHERS = Kind(Area.REQUEST, "more_errors", None, "", "")


class ErrorLog:
    """What one process has met and not yet written down."""

    def __init__(self, interval_s: float = INTERVAL_S) -> None:
        self._gathered: dict[UUID, dict[Kind, ErrorCount]] = defaultdict(dict)
        self._lock = threading.Lock()
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
        """Keep an error of a tenant. Its actor is whoever is asking, or the one that is named."""
        now = timezone.now()
        who = request_context.principal.get() if actor is None else actor
        kind = Kind(
            area,
            code,
            status,
            storable(shown(place), MAX_NAME_CHARS),
            storable(who, MAX_NAME_CHARS),
        )
        said = storable(shown(detail), MAX_DETAIL_CHARS)
        with self._lock:
            self._gather(tenant_id, kind, ErrorCount(1, now, now, said, _request_id()))
        self._ticker.begin()

    def flush(self) -> int:
        """Write down what was gathered; keep it while the database is away."""
        with self._lock:
            taken, self._gathered = self._gathered, defaultdict(dict)
        rows = [
            _row(tenant_id, kind, found)
            for tenant_id, kinds in taken.items()
            for kind, found in kinds.items()
        ]
        # In one order in all processes, so that no two of them wait for each other.
        rows.sort(key=lambda row: (row[1], row[-1]))
        if not rows:
            return 0
        try:
            with connections["relay"].cursor() as cursor:
                cursor.executemany(_WRITE, rows)
        except DataError as unstorable:
            # It would be refused again, and with it whatever else is noted from here on.
            logger.error("%d errors cannot be written and are dropped: %s", len(rows), unstorable)  # noqa: TRY400 -- the reason is in the message
            return 0
        except DatabaseError as away:
            logger.warning("errors not written, kept for later: %s", away)
            self._put_back(taken)
            return 0
        finally:
            connections["relay"].close()
        return len(rows)

    def stop(self) -> None:
        """Write the rest and end the thread."""
        self._ticker.stop()

    def _put_back(self, taken: Mapping[UUID, Mapping[Kind, ErrorCount]]) -> None:
        with self._lock:
            for tenant_id, kinds in taken.items():
                for kind, found in kinds.items():
                    self._gather(tenant_id, kind, found)

    def _gather(self, tenant_id: UUID, kind: Kind, found: ErrorCount) -> None:
        if tenant_id not in self._gathered and len(self._gathered) >= MAX_TENANTS:
            return
        kinds = self._gathered[tenant_id]
        if kind not in kinds and len(kinds) >= MAX_KINDS:
            kind, found.detail, found.request_id = OTHERS, "", ""
        known = kinds.setdefault(kind, found)
        if known is not found:
            known.count += found.count
            known.first = min(known.first, found.first)
            if found.last >= known.last:
                known.last, known.detail = found.last, found.detail
                known.request_id = found.request_id


def storable(text: str, most: int) -> str:
    """Return the beginning of a text without what PostgreSQL stores in no text."""
    valid = text[:most].encode("utf-8", "replace").decode()
    return valid.replace("\0", "\ufffd")


def _request_id() -> str:
    return storable(request_context.request_id.get(), 64)


def _row(tenant_id: UUID, kind: Kind, found: ErrorCount) -> Row:
    minute = found.first.replace(second=0, microsecond=0).isoformat()
    equal = [kind.area, kind.code, kind.status, kind.place, kind.actor, minute]
    fingerprint = hashlib.sha256(json.dumps(equal).encode()).digest()
    return (
        uuid7(),
        tenant_id,
        kind.area.value,
        kind.code,
        kind.status,
        kind.place,
        found.detail,
        kind.actor,
        found.request_id,
        found.count,
        found.first,
        found.last,
        fingerprint,
    )


_log = ErrorLog()
note = _log.note
flush = _log.flush
stop = _log.stop


async def aclose() -> None:
    """Write down what was noted last, when an event loop ends."""
    await asyncio.to_thread(stop)


def note_refusal(
    error: ApiError, place: str, parameters: Mapping[str, str] | None = None
) -> ApiError:
    """Keep a refusal of the tenant on whose behalf this runs; return it. Nobody's is not kept.

    `place` is the call, with the names of its address's parameters in braces or angle brackets.
    An error that passes several of those who tell callers about errors is kept once.
    """
    tenant = request_context.tenant_id.get()
    if not tenant or error.is_noted:
        return error
    for name, value in (parameters or {}).items():
        if name in SHOWN_PARAMETERS:
            place = place.replace(f"{{{name}}}", value).replace(f"<str:{name}>", value)
    note_error(UUID(tenant), Area.REQUEST, error, place=place)
    return error


def note_error(
    tenant_id: UUID, area: Area, error: ApiError, *, place: str, actor: str | None = None
) -> None:
    """Keep what a caller or a subscriber of a tenant was told."""
    error.is_noted = True
    said = _said(error)
    note(tenant_id, area, error.code, place=place, detail=said, status=error.status, actor=actor)


def _said(error: ApiError) -> str:
    """Return what was said, each offending place in a line of its own, and nothing twice."""
    places = [": ".join(filter(None, (p.pointer, p.detail))) for p in error.errors]
    if not places:
        return error.detail or error.title
    repeats = error.detail in ("", *(problem.detail for problem in error.errors))
    return "\n".join(places if repeats else [error.detail, *places])


def note_dead_task(tenant_id: UUID, name: str, attempts: int) -> None:
    """Keep that a task of a tenant was given up. What it said is for staff: it may say anything."""
    detail = f"Given up after {attempts} attempts. Staff can see why, and run it again."
    note(tenant_id, Area.TASK, "task_failed", place=name, detail=detail)
