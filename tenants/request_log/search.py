"""Searches a tenant's request log, newest entries first.

Batches of several processes overlap, so entries are sorted by time across them. A search reads
batches from the newest to older ones, twice as many in each step, until no batch that is left can
contain an entry of the page. So the first page of a long log reads little of it, and a search that
finds nothing reads all of it, which the bounds of the log limit.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from django.db import connections
from django.utils import timezone

from foundation.api.rendering import timestamp
from foundation.json_types import JsonObject
from foundation.scope import current_tenant_id
from tenants.request_log import bounds

FIRST_BATCHES = 4

#: Parameters of the statements.
SqlValue = str | int | float | datetime.datetime | UUID | list[UUID]


@dataclass(frozen=True, slots=True)
class RequestFilter:
    """What a search returns. None and "": everything."""

    since: datetime.datetime
    until: datetime.datetime | None = None
    method: str = ""
    #: Part of the route.
    route: str = ""
    #: The first and the last status.
    status: tuple[int, int] | None = None
    actor: str = ""
    request_id: str = ""
    code: str = ""
    min_duration_ms: float | None = None

    def conditions(self) -> tuple[str, list[SqlValue]]:
        """Return SQL for the columns of an entry, and its parameters."""
        parts: list[tuple[str, tuple[SqlValue, ...]]] = [("e.at >= %s", (self.since,))]
        if self.until is not None:
            parts.append(("e.at < %s", (self.until,)))
        if self.route:
            parts.append(("strpos(lower(e.route), lower(%s)) > 0", (self.route,)))
        if self.status is not None:
            parts.append(("e.status BETWEEN %s AND %s", self.status))
        if self.min_duration_ms is not None:
            parts.append(("e.duration_ms >= %s", (self.min_duration_ms,)))
        equal = {
            "method": self.method,
            "actor": self.actor,
            "request_id": self.request_id,
            "code": self.code,
        }
        parts += [(f"e.{column} = %s", (value,)) for column, value in equal.items() if value]
        return " AND ".join(sql for sql, _ in parts), [v for _, values in parts for v in values]


class LoggedRequest(NamedTuple):
    """An entry of the log. Its first three members identify it and are what it is sorted by."""

    at: datetime.datetime
    batch: UUID
    ordinal: int
    kind: str
    method: str
    route: str
    status: int
    duration_ms: float
    bytes_in: int
    bytes_out: int
    actor: str
    request_id: str
    code: str


class RequestPosition(NamedTuple):
    """The position of an entry, from which the next page continues."""

    at: datetime.datetime
    batch: UUID
    ordinal: int

    def encode(self) -> bytes:
        return json.dumps([self.at.isoformat(), str(self.batch), self.ordinal]).encode()

    @classmethod
    def decode(cls, payload: bytes) -> RequestPosition:
        at, batch, ordinal = json.loads(payload)
        return cls(datetime.datetime.fromisoformat(at), UUID(batch), ordinal)


class BatchHead(NamedTuple):
    """A batch, as far as a search must know it to decide whether to read it."""

    last_at: datetime.datetime
    id: UUID


@dataclass(frozen=True, slots=True)
class MissingRequests:
    """What is missing from a part of the log."""

    #: Not recorded, since there were too many at once.
    dropped: int
    #: Removed, because the log was full; all of them are from before `removed_until`.
    removed: int
    removed_until: datetime.datetime | None


def oldest_kept() -> datetime.datetime:
    """Return the time from which entries are kept."""
    return timezone.now() - bounds.RETENTION


def search(
    request_filter: RequestFilter, limit: int, after: RequestPosition | None = None
) -> list[LoggedRequest]:
    """Return entries of the tenant in scope, newest first, from a position on."""
    page: list[LoggedRequest] = []
    last: BatchHead | None = None
    batches = FIRST_BATCHES
    while True:
        heads = _heads(request_filter, after, last, batches)
        if heads:
            page += _matches(request_filter, after, [head.id for head in heads], limit)
            page = sorted(page, key=lambda entry: entry[:3], reverse=True)[:limit]
        if len(heads) < batches or is_complete(page, limit, heads[-1]):
            return page
        last, batches = heads[-1], batches * 2


def is_complete(page: Sequence[LoggedRequest], limit: int, last: BatchHead) -> bool:
    """Whether no batch older than `last` can contain an entry of the page."""
    return len(page) >= limit and page[limit - 1].at > last.last_at


def _heads(
    request_filter: RequestFilter, after: RequestPosition | None, last: BatchHead | None, limit: int
) -> list[BatchHead]:
    """Return the next batches that may have entries of the page, by their newest entries."""
    sql = "tenant_id = %s AND last_at >= %s"
    values: list[SqlValue] = [current_tenant_id(), request_filter.since]
    if request_filter.until is not None:
        sql += " AND first_at < %s"
        values.append(request_filter.until)
    if after is not None:
        sql += " AND first_at <= %s"
        values.append(after.at)
    if last is not None:
        sql += " AND (last_at, id) < (%s, %s)"
        values += last
    with connections["default"].cursor() as cursor:
        cursor.execute(
            f"SELECT last_at, id FROM tenants_requestbatch WHERE {sql} "  # noqa: S608 -- constants
            "ORDER BY last_at DESC, id DESC LIMIT %s",
            [*values, limit],
        )
        return [BatchHead(*row) for row in cursor.fetchall()]


def _matches(
    request_filter: RequestFilter, after: RequestPosition | None, batches: list[UUID], limit: int
) -> list[LoggedRequest]:
    conditions, values = request_filter.conditions()
    if after is not None:
        conditions += " AND (e.at, b.id, e.place) < (%s, %s, %s)"
        values += after
    with connections["default"].cursor() as cursor:
        cursor.execute(
            "SELECT e.at, b.id, e.place, e.kind, e.method, e.route, e.status, e.duration_ms, "  # noqa: S608 -- constants
            "e.bytes_in, e.bytes_out, e.actor, e.request_id, e.code "
            "FROM tenants_requestbatch b, unnest(b.at, b.kind, b.method, b.route, b.status, "
            "b.duration_ms, b.bytes_in, b.bytes_out, b.actor, b.request_id, b.code) "
            "WITH ORDINALITY AS e (at, kind, method, route, status, duration_ms, bytes_in, "
            "bytes_out, actor, request_id, code, place) "
            f"WHERE b.tenant_id = %s AND b.id = ANY(%s) AND {conditions} "
            "ORDER BY e.at DESC, b.id DESC, e.place DESC LIMIT %s",
            [current_tenant_id(), batches, *values, limit],
        )
        return [LoggedRequest(*row) for row in cursor.fetchall()]


def missing(request_filter: RequestFilter) -> MissingRequests:
    """Return what is missing from the period of a search, to the minute."""
    minute = datetime.timedelta(minutes=1)
    until = timezone.now() if request_filter.until is None else request_filter.until
    with connections["default"].cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(sum(dropped), 0)::bigint, coalesce(sum(removed), 0)::bigint, "
            "max(minute) FILTER (WHERE removed > 0) FROM tenants_requestgap "
            "WHERE tenant_id = %s AND minute > %s AND minute < %s",
            [current_tenant_id(), request_filter.since - minute, until],
        )
        dropped, removed, last = cursor.fetchone() or (0, 0, None)
    return MissingRequests(dropped, removed, None if last is None else last + minute)


def describe(entry: LoggedRequest) -> JsonObject:
    """Return an entry as the API shows it."""
    return {
        "id": f"{entry.batch}-{entry.ordinal}",
        "at": timestamp(entry.at),
        "kind": entry.kind,
        "method": entry.method,
        "route": entry.route,
        "status": entry.status,
        "duration_ms": round(entry.duration_ms, 3),
        "bytes_in": entry.bytes_in,
        "bytes_out": entry.bytes_out,
        "actor": entry.actor,
        "request_id": entry.request_id,
        "code": entry.code or None,
    }
