"""Records requests: collected in memory, and written every two seconds.

Recording must cost a request next to nothing, so it only appends to a list. A background thread
writes what all tenants' requests have added in one statement; PostgreSQL sorts it into one row for
each tenant. Under a flood the rest is counted instead of recorded, so a process holds a bounded
number of entries, also while the database is unavailable. A killed process loses its last two
seconds.

An entry has no body, no query string and no header except the request id. Paths are those of
routes, in which a caller's own values appear only where they name a collection, a topic, an
aggregate or the tenant, and pass the same filter as log lines.
"""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from http import HTTPStatus
from typing import NamedTuple

from django.db import DatabaseError, DataError, connections, transaction

from foundation.environment import environment
from foundation.redaction import shown
from foundation.ticker import Ticker
from tenants.log_texts import SHOWN_PARAMETERS, named_route, storable
from tenants.request_log import bounds

INTERVAL_S = 2.0
MAX_TEXT_CHARS, MAX_NAME_CHARS = 200, 100
#: How often a process checks that the table is not much larger than it should be.
CHECK_INTERVAL_S = 30.0
#: Space of an entry and of a batch besides their texts.
ENTRY_BYTES, BATCH_BYTES = 60, 600
#: A parameter as Django's routes declare it.
_CONVERTER = re.compile(r"<(?:\w+:)?(\w+)>")
#: Reading the log does not add to it.
OWN_ROUTE = "api/v1/tenants/<str:tenant>/request-log"

logger = logging.getLogger(__name__)


class RequestKind(StrEnum):
    """What an entry stands for."""

    REQUEST = "request"
    #: A message of a WebSocket that corresponds to a request.
    MESSAGE = "message"
    #: The start and the end of a WebSocket or an event stream.
    OPENED = "opened"
    CLOSED = "closed"


KINDS = tuple(kind.value for kind in RequestKind)


class RequestEntry(NamedTuple):
    """One entry. A tuple, since nothing else is created as cheaply."""

    tenant_id: str
    kind: RequestKind
    method: str
    #: From `route_name`.
    route: str
    #: Of HTTP, or the close code of a WebSocket.
    status: int
    seconds: float
    bytes_in: int
    bytes_out: int
    actor: str
    request_id: str
    #: The code of the error, or "".
    code: str = ""


_WRITE = f"""
INSERT INTO tenants_requestbatch
  (id, tenant_id, first_at, last_at, entries, size_bytes,
   at, kind, method, route, status, duration_ms, bytes_in, bytes_out, actor, request_id, code)
SELECT gen_random_uuid(), tenant_id, min(at), max(at), count(*),
  {BATCH_BYTES} + sum({ENTRY_BYTES} + octet_length(route) + octet_length(actor)
    + octet_length(request_id) + octet_length(code)),
  array_agg(at), array_agg(kind), array_agg(method), array_agg(route), array_agg(status),
  array_agg(duration_us::float8 / 1000), array_agg(bytes_in), array_agg(bytes_out),
  array_agg(actor), array_agg(request_id), array_agg(code)
FROM (
  SELECT *, to_timestamp(at_us::float8 / 1000000) AS at
  FROM unnest(%s::bigint[], %s::uuid[], %s::text[], %s::text[], %s::text[], %s::smallint[],
    %s::bigint[], %s::bigint[], %s::bigint[], %s::text[], %s::text[], %s::text[])
  AS entry (at_us, tenant_id, kind, method, route, status, duration_us, bytes_in, bytes_out,
    actor, request_id, code)
) entry GROUP BY tenant_id
"""  # noqa: S608 -- two constants

_COUNT_DROPPED = """
INSERT INTO tenants_requestgap (id, tenant_id, minute, dropped, removed)
SELECT gen_random_uuid(), tenant_id, date_trunc('minute', now()), dropped, 0
FROM unnest(%s::uuid[], %s::bigint[]) AS gap (tenant_id, dropped) ORDER BY tenant_id
ON CONFLICT (tenant_id, minute)
DO UPDATE SET dropped = tenants_requestgap.dropped + EXCLUDED.dropped
"""


class RequestLog:
    """Requests that one process has recorded and not yet written."""

    def __init__(self, interval_s: float = INTERVAL_S) -> None:
        #: With the time in microseconds.
        self._entries: list[tuple[int, RequestEntry]] = []
        #: Entries that were recorded and dropped since they were last written, by tenant.
        self._recorded: dict[str, int] = {}
        self._dropped: Counter[str] = Counter()
        self._lock = threading.Lock()
        #: Serialises `flush`, which tests and a process that exits call as well as the thread.
        self._writing = threading.Lock()
        self._ticker = Ticker("request log", interval_s, self.flush)
        self._check_at = 0.0
        self._is_overfull = False

    def note(self, entry: RequestEntry) -> None:
        """Record a request that has been answered."""
        if not environment().rillbase_request_log_mib:
            return
        at_us = time.time_ns() // 1000
        tenant_id = entry.tenant_id
        share = 1.0 if entry.code or is_failed(entry.status) else bounds.ORDINARY_SHARE
        with self._lock:
            recorded, entries = self._recorded.get(tenant_id, 0), self._entries
            if (
                recorded < bounds.MAX_PER_INTERVAL * share
                and len(entries) < bounds.MAX_PENDING * share
            ):
                self._recorded[tenant_id] = recorded + 1
                entries.append((at_us, entry))
            else:
                self._dropped[tenant_id] += 1
        self._ticker.begin()

    def flush(self) -> int:
        """Write what was recorded; keep it if the database is unavailable."""
        with self._writing:
            with self._lock:
                entries, self._entries = self._entries, []
                dropped, self._dropped = self._dropped, Counter()
                self._recorded = {}
            if not entries and not dropped:
                return 0
            try:
                with transaction.atomic(using="relay"):
                    return self._write(entries, dropped)
            except DataError as unstorable:
                logger.error(  # noqa: TRY400 -- the reason is in the message
                    "%d requests could not be written and are dropped: %s", len(entries), unstorable
                )
            except DatabaseError as error:
                logger.warning("requests could not be written and are kept for later: %s", error)
                self._restore(entries, dropped)
            finally:
                connections["relay"].close()
            return 0

    def stop(self) -> None:
        """Flush and stop the thread."""
        self._ticker.stop()

    def _write(self, entries: Sequence[tuple[int, RequestEntry]], dropped: Counter[str]) -> int:
        with connections["relay"].cursor() as cursor:
            if time.monotonic() >= self._check_at:
                cursor.execute("SELECT pg_total_relation_size('tenants_requestbatch')")
                row = cursor.fetchone()
                # Only if the sweep does not run.
                self._is_overfull = row is not None and row[0] > 2 * bounds.max_bytes()
                self._check_at = time.monotonic() + CHECK_INTERVAL_S
            if self._is_overfull:
                dropped = dropped + Counter(entry.tenant_id for _, entry in entries)
                entries = ()
            if dropped:
                cursor.execute(_COUNT_DROPPED, (array(dropped), numbers(dropped.values())))
            if entries:
                cursor.execute(_WRITE, columns_of(entries))
        return len(entries)

    def _restore(self, entries: list[tuple[int, RequestEntry]], dropped: Mapping[str, int]) -> None:
        with self._lock:
            self._entries[:0] = entries
            self._dropped.update(dropped)


def is_failed(status: int) -> bool:
    """Whether a status is an error of HTTP, or a close code of one."""
    return status >= HTTPStatus.BAD_REQUEST and status not in (1000, 1001, 1012)


def columns_of(entries: Iterable[tuple[int, RequestEntry]]) -> list[str]:
    """Return the arrays of entries as PostgreSQL reads them, which costs a tenth of what the driver
    would spend on their elements.
    """
    times, rows = zip(*entries, strict=True)
    tenants, kinds, methods, routes, status, seconds, received, sent, *texts = zip(
        *rows, strict=True
    )
    return [
        numbers(times),
        array(tenants),
        array(kinds),
        array(methods),
        array(routes),
        numbers(status),
        numbers([int(duration * 1e6) for duration in seconds]),
        numbers(received),
        numbers(sent),
        *map(array, texts),
    ]


def route_name(route: str, parameters: Mapping[str, str]) -> str:
    """Return a route as it is recorded: with the values of the parameters that are shown. The text
    of a caller is truncated here, so that neither entries nor the cache can hold much of it.
    """
    values = [parameters.get(name, "")[:MAX_NAME_CHARS] for name in SHOWN_PARAMETERS]
    return _route_name(route, *values)


@lru_cache(maxsize=4096)
def _route_name(route: str, *values: str) -> str:
    given = zip(SHOWN_PARAMETERS, values, strict=True)
    path = _CONVERTER.sub(r"{\1}", route)
    name = named_route(path, {name: value for name, value in given if value})
    return storable(shown(name), MAX_TEXT_CHARS)


def numbers(values: Iterable[int]) -> str:
    """Return an array of numbers."""
    return "{" + ",".join(map(str, values)) + "}"


def array(values: Iterable[str]) -> str:
    """Return an array of texts. Most occur many times."""
    values = list(values)
    quoted = {value: _quoted(value) for value in set(values)}
    return "{" + ",".join([quoted[value] for value in values]) + "}"


def _quoted(text: str) -> str:
    if text.isalnum() and len(text) <= MAX_TEXT_CHARS:
        # Most request ids; the check costs a fifth of the rest.
        return f'"{text}"'
    text = storable(text, MAX_TEXT_CHARS).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


_log = RequestLog()
note = _log.note
flush = _log.flush
stop = _log.stop


async def aclose() -> None:
    """Flush when an event loop ends."""
    await asyncio.to_thread(stop)
