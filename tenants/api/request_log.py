"""`/api/v1/tenants/{tenant}/request-log`: the requests of the last day. Read-only."""

from __future__ import annotations

import datetime
import re
from http import HTTPStatus

from django.http import HttpRequest
from django.urls import path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from foundation.api import cursors
from foundation.api.rendering import timestamp
from foundation.json_types import JsonObject
from foundation.metrics import METHODS
from tenants.api.base import TenantView
from tenants.api.parameters import invalid, moment
from tenants.request_log import bounds, search
from tenants.request_log.recorder import KINDS
from tenants.request_log.search import RequestFilter, RequestPosition

TAG = "Request log"
WEBSOCKET = "WS"
ALL_METHODS = (*sorted(METHODS), WEBSOCKET)
#: Of parameters that are compared with a text.
MAX_CHARS = 200
MAX_DURATION_MS = 7 * 24 * 3600 * 1000
_STATUS = re.compile(r"([1-5])xx|[1-4]?[0-9]{3}")
_DURATION = re.compile(r"[0-9]{1,9}(\.[0-9]{1,3})?")


class RequestEntryAnswer(serializers.Serializer[object]):
    """A request, or the start or end of a connection."""

    id = serializers.CharField()
    at = serializers.DateTimeField(help_text="When it was completed.")
    kind = serializers.ChoiceField(
        KINDS,
        help_text="`request`, a `message` of a WebSocket that corresponds to a request, or that a "
        "WebSocket or an event stream was `opened` or `closed`.",
    )
    method = serializers.CharField(help_text="Of HTTP, or `WS`.")
    route = serializers.CharField(
        help_text="The path with names of parameters instead of their values, except those of "
        "collections, topics, aggregates and the tenant; of a message, its type."
    )
    status = serializers.IntegerField(help_text="Of HTTP; for a closed WebSocket, the close code.")
    duration_ms = serializers.FloatField(
        help_text="Until the response was complete; for a stream that was opened, until it began."
    )
    bytes_in = serializers.IntegerField(help_text="Size of the body that was received.")
    bytes_out = serializers.IntegerField(help_text="Size of the body that was sent.")
    actor = serializers.CharField(help_text="The caller, such as `api_key:<id>`.")
    request_id = serializers.CharField(help_text="Messages have that of their connection.")
    code = serializers.CharField(allow_null=True, help_text="The id from the list of errors.")


class MissingRequestsAnswer(serializers.Serializer[object]):
    """What is missing from the period that was searched, to the minute."""

    dropped = serializers.IntegerField(
        help_text="Requests that were not recorded, because there were too many at once."
    )
    removed = serializers.IntegerField(
        help_text="Requests that were removed, because the log was full."
    )
    removed_until = serializers.DateTimeField(
        allow_null=True, help_text="From this time on, nothing was removed."
    )


class RequestEntryPage(serializers.Serializer[object]):
    """One page of the log."""

    items = RequestEntryAnswer(many=True)
    next_cursor = serializers.CharField(
        allow_null=True, help_text="Pass it as `cursor` for the next page; null at the end."
    )
    is_recorded = serializers.BooleanField(
        help_text="False if the installation does not record requests."
    )
    missing = MissingRequestsAnswer()


class RequestLogView(TenantView):
    """The request log of a tenant, newest first."""

    serves_inactive = True

    @extend_schema(
        operation_id="request_log_list",
        tags=[TAG],
        summary="Search the request log",
        description="Requests of the last 24 hours. The newest ones appear after two seconds. "
        "Reading the log does not add to it.",
        parameters=[
            OpenApiParameter("method", str, enum=ALL_METHODS),
            OpenApiParameter("route", str, description="Part of the route, in any case."),
            OpenApiParameter("status", str, description="Such as `404` or `4xx`."),
            OpenApiParameter("actor", str),
            OpenApiParameter("request_id", str),
            OpenApiParameter("code", str, description="The code of the error."),
            OpenApiParameter("min_duration_ms", float),
            OpenApiParameter("since", datetime.datetime, description="Default: 24 hours ago."),
            OpenApiParameter("until", datetime.datetime, description="Default: now."),
        ],
        responses=RequestEntryPage,
    )
    def get(self, request: Request, tenant: str) -> Response:
        request_filter = _filter(request)
        limit = cursors.page_size(request)
        bound = cursors.binding(f"request-log:{self.tenant.id}", request.GET)
        cursor = request.GET.get("cursor")
        after = RequestPosition.decode(cursors.open_sealed(cursor, bound)) if cursor else None
        entries = search.search(request_filter, limit + 1, after)
        more = len(entries) > limit
        last = RequestPosition(*entries[limit - 1][:3]) if more else None
        return Response(
            {
                "items": [search.describe(entry) for entry in entries[:limit]],
                "next_cursor": None if last is None else cursors.seal(last.encode(), bound),
                "is_recorded": bounds.max_bytes() > 0,
                "missing": _missing(request_filter),
            }
        )


def _missing(request_filter: RequestFilter) -> JsonObject:
    gap = search.missing(request_filter)
    until = gap.removed_until
    return {
        "dropped": gap.dropped,
        "removed": gap.removed,
        "removed_until": None if until is None else timestamp(until),
    }


def _filter(request: HttpRequest) -> RequestFilter:
    oldest = search.oldest_kept()
    method = request.GET.get("method", "").upper()
    if method and method not in ALL_METHODS:
        raise invalid("method", f"One of {', '.join(ALL_METHODS)}.")
    return RequestFilter(
        since=max(moment(request, "since") or oldest, oldest),
        until=moment(request, "until"),
        method=method,
        route=_text(request, "route"),
        status=_status(request.GET.get("status", "")),
        actor=_text(request, "actor"),
        request_id=_text(request, "request_id"),
        code=_text(request, "code"),
        min_duration_ms=_duration(request.GET.get("min_duration_ms", "")),
    )


def _text(request: HttpRequest, name: str) -> str:
    text = request.GET.get(name, "")
    if len(text) > MAX_CHARS:
        raise invalid(name, f"At most {MAX_CHARS} characters.")
    return text


def _status(text: str) -> tuple[int, int] | None:
    if not text:
        return None
    match = _STATUS.fullmatch(text)
    if match is None:
        raise invalid("status", "A status such as 404, or a class such as 4xx.")
    if match[1] is None:
        return int(text), int(text)
    first = int(match[1]) * HTTPStatus.CONTINUE
    return first, first + 99


def _duration(text: str) -> float | None:
    if not text:
        return None
    if _DURATION.fullmatch(text) is None:
        raise invalid("min_duration_ms", "A number of milliseconds.")
    return float(text)


urlpatterns = [path("tenants/<str:tenant>/request-log", RequestLogView.as_view())]
