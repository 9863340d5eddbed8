"""Aggregates: adding events, and reading rows, once or as they change."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING
from urllib.parse import quote

from rillbase import ejson
from rillbase.http import ApiRequest
from rillbase.live import QueryWatcher, Result, Snapshot
from rillbase.shapes import Direction, Document
from rillbase.tables import Tabular
from rillbase.view import Change, Item
from rillbase.writes.calls import new_key

if TYPE_CHECKING:
    from rillbase.core import ClientCore

#: Members whose names are reserved in Python.
_NAMES = {"since": "from", "until": "to"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RowQuery:
    """A query of an aggregate."""

    #: Times: RFC 3339, milliseconds since 1970, or relative to now such as `-24h`.
    since: str | int | None = None
    until: str | int | None = None
    group_by: Sequence[str] | None = None
    #: A filter on the dimensions.
    filter: Mapping[str, object] | None = None
    #: Coarser buckets, such as `1h`.
    bucket: str | None = None
    order: Sequence[tuple[str, Direction]] | None = None
    limit: int | None = None
    measures: Sequence[str] | None = None
    #: `previous`, or a duration: compares each row with that of the earlier period.
    compare: str | None = None
    rollup: Sequence[str] | None = None

    def body(self) -> Document:
        """Return the members of the query's message.

        Example:
            print(RowQuery(since="-24h", limit=5).body())  # {'from': '-24h', 'limit': 5}
        """
        members = {f.name: getattr(self, f.name) for f in fields(self)}
        return {_NAMES.get(name, name): v for name, v in members.items() if v is not None}


@dataclass(frozen=True, slots=True)
class Added:
    """The result of adding events."""

    applied: int
    #: Events that had been added before.
    repeated: int


@dataclass(frozen=True, slots=True)
class Rows(Tabular):
    """Rows as of one point in time."""

    rows: list[Document]
    #: Identifies the snapshot: a query with it, within a minute, sees the same state.
    snapshot: str
    #: For a view: all writes before it are included.
    as_of: str | None = None

    @property
    def documents(self) -> list[Document]:
        """The rows.

        Example:
            rows = visits.query(RowQuery(group_by=["page"]))
            print(rows.documents[0]["page"])  # /
        """
        return self.rows


EVERYTHING = RowQuery()


class AsyncAggregate:
    """One aggregate."""

    def __init__(self, core: ClientCore, name: str) -> None:
        self._core = core
        self._name = name

    @property
    def name(self) -> str:
        """The name of the aggregate.

        Example:
            print(visits.name)  # visits
        """
        return self._name

    async def add(self, *events: Mapping[str, object]) -> Added:
        """Add events, all or none. A retried call adds them once.

        Example:
            added = await visits.add({"page": "/"}, {"page": "/about"})
            print(added.applied)  # 2
        """
        body = ejson.dumps([dict(event) for event in events])
        request = ApiRequest("POST", self._path("events"), body, idempotency_key=new_key())
        answer = await self._core.http.call(request)
        return Added(answer["applied"], answer["repeated"])

    async def query(self, asked: RowQuery = EVERYTHING, *, snapshot: str | None = None) -> Rows:
        """Return rows. `snapshot`: `fresh`, or that of an earlier answer.

        Example:
            rows = await visits.query(RowQuery(group_by=["page"], limit=5))
            print(rows.rows[0]["page"])  # /
        """
        body = asked.body() if snapshot is None else {**asked.body(), "snapshot": snapshot}
        request = ApiRequest("POST", self._path("query"), ejson.dumps(body))
        answer = await self._core.http.call(request)
        return Rows(answer["rows"], answer["snapshot"], answer.get("as_of"))

    def watch(self, asked: RowQuery = EVERYTHING) -> AsyncIterator[Snapshot]:
        """Yield the rows, and again whenever they or the state change.

        Example:
            async for snapshot in visits.watch(RowQuery(group_by=["page"])):
                print(snapshot.documents[0]["page"])  # /
                break  # ends the subscription; without it, the loop continues with each change
        """
        return self._live(asked).snapshots()

    def on_snapshot(
        self, listener: Callable[[Snapshot], object], asked: RowQuery = EVERYTHING
    ) -> Callable[[], None]:
        """Call the listener with the rows, and again whenever they or the state change.

        Return a function that unsubscribes.

        Example:
            unsubscribe = visits.on_snapshot(lambda snapshot: print(len(snapshot.documents)))
            unsubscribe()
        """
        return self._core.watchers.begin(self._live(asked).snapshots(), listener)

    def changes(self, asked: RowQuery = EVERYTHING) -> AsyncIterator[Result | Change]:
        """Yield the rows and then each changed row.

        Example:
            async for event in visits.changes(RowQuery(group_by=["page"])):
                print(event.type)  # result
                break  # without it, the loop continues with each changed row
        """
        return self._live(asked).changes()

    def _live(self, asked: RowQuery) -> QueryWatcher:
        query = {"aggregate": self._name, **asked.body()}
        return QueryWatcher(query, self._core.connection, _never_omitted)

    def _path(self, call: str) -> str:
        return f"/v1/aggregates/{quote(self._name, safe='')}/{call}"


async def _never_omitted(_: object) -> Item | None:
    """Rows are never omitted from their events."""
    return None
