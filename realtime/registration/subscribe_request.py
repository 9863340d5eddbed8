"""Parses a subscribe message: the query and how its changes are delivered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from data_plane.request_reader import integer, refuse_unknown, refusing
from documents.api.queries import MAX_OFFSET, read_group, read_group_sort, read_lookups
from foundation.errors import FieldProblem, InvalidBody
from rillbase_native import Filter, Group, Lookups, Projection, Sort, Value

MEMBERS = (
    "collection",
    "filter",
    "sort",
    "projection",
    "offset",
    "limit",
    "group",
    "lookup",
    "resume",
    "options",
)
OPTIONS = ("deliver", "throttle_ms", "events")
MATCHES = ("add", "change", "changeIndex", "remove")
#: The rows of a window that is kept up to date, including those before its offset.
MAX_WINDOW = 10_000
MAX_THROTTLE_MS = 60_000
MAX_RESUME_CHARS = 4_096


@dataclass(frozen=True, slots=True)
class DeliveryOptions:
    """How changes are delivered to a subscriber."""

    deliver: Literal["events", "result"] = "events"
    throttle_ms: int = 0
    #: The kinds of change that it wants to receive.
    events: tuple[str, ...] = MATCHES


@dataclass(frozen=True, slots=True)
class QuerySubscribeRequest:
    """A query as written by its subscriber, without the access rule."""

    collection: str
    filter: Filter
    sort: Sort
    projection: Projection | None
    group: Group | None
    lookups: Lookups | None
    offset: int
    limit: int | None
    options: DeliveryOptions
    resume: str | None

    @property
    def has_window(self) -> bool:
        """Whether it needs a sort node, because of its order, window, groups or lookups."""
        if self.group is not None or self.lookups is not None:
            return True
        return not self.sort.by_id or self.offset > 0 or self.limit is not None


def read(message: Value) -> QuerySubscribeRequest:
    """Parse a `subscribe` message, or raise why it is not valid."""
    refuse_unknown(message, (*MEMBERS, "type", "id"))
    with refusing():
        condition = Filter.parse(message.get("filter"))
        condition.check_live()
        group = read_group(message)
        lookups = read_lookups(message)
        sort = _sort(message, condition, group)
        shown = _present(message, "projection")
        projection = None if shown is None else Projection.parse(shown)
    offset = integer(message.get("offset"), "offset", minimum=0, maximum=MAX_OFFSET, default=0)
    limited = _present(message, "limit")
    limit = None
    if limited is not None:
        limit = integer(limited, "limit", minimum=1, maximum=MAX_WINDOW, default=1)
    if offset + (limit or 0) > MAX_WINDOW:
        raise _wrong("/limit", f"`offset` and `limit` together may be at most {MAX_WINDOW}.")
    return QuerySubscribeRequest(
        collection=_text(message, "collection", 63) or "",
        filter=condition,
        sort=sort,
        projection=projection,
        group=group,
        lookups=lookups,
        offset=offset,
        limit=limit,
        options=_options(_present(message, "options")),
        resume=_text(message, "resume", MAX_RESUME_CHARS),
    )


def _sort(message: Value, condition: Filter, group: Group | None) -> Sort:
    if group is None:
        return Sort.parse(message.get("sort"), condition)
    return read_group_sort(message, group) or Sort.parse(None)


def _options(value: Value | None) -> DeliveryOptions:
    if value is None:
        return DeliveryOptions()
    if value.kind != "object":
        raise _wrong("/options", "Expected an object.")
    refuse_unknown(value, OPTIONS, "/options")
    deliver = _text(value, "deliver", 16, "/options") or "events"
    if deliver not in ("events", "result"):
        raise _wrong("/options/deliver", "Expected `events` or `result`.")
    return DeliveryOptions(
        "result" if deliver == "result" else "events",
        integer(
            value.get("throttle_ms"),
            "options/throttle_ms",
            minimum=0,
            maximum=MAX_THROTTLE_MS,
            default=0,
        ),
        _events(_present(value, "events")),
    )


def _events(value: Value | None) -> tuple[str, ...]:
    if value is None:
        return MATCHES
    names = []
    if value.kind == "array":
        names = [item.text() for item in value.items() if item.kind == "string"]
    if value.kind != "array" or len(names) != len(value.items()) or set(names) - set(MATCHES):
        raise _wrong("/options/events", f"Expected a list of {', '.join(MATCHES)}.")
    return tuple(name for name in MATCHES if name in names)


def _present(value: Value, name: str) -> Value | None:
    member = value.get(name)
    return None if member is None or member.is_null else member


def _text(value: Value, name: str, max_chars: int, prefix: str = "") -> str | None:
    member = _present(value, name)
    if member is None:
        return None
    if member.kind != "string" or len(member.text()) > max_chars:
        raise _wrong(f"{prefix}/{name}", f"Expected a string of at most {max_chars} characters.")
    return member.text()


def _wrong(pointer: str, detail: str) -> InvalidBody:
    return InvalidBody(errors=[FieldProblem(pointer, "invalid", detail)])
