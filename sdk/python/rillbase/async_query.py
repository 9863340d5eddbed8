"""Queries of the asynchronous client: run once, or followed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rillbase import ejson, ids
from rillbase.core import ClientCore
from rillbase.http import ApiRequest
from rillbase.live import QueryWatcher, Result, Snapshot
from rillbase.query import Operator, Spec
from rillbase.shapes import Document
from rillbase.tables import polars_of, to_arrow, to_pandas
from rillbase.view import Change, Item
from rillbase.writes.calls import address

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

PAGE = 1_000
#: The maximum number of groups that the server returns.
ROWS = 10_000


class AsyncQuery:
    """A query, run once or subscribed to. Immutable: methods that narrow it return another one."""

    def __init__(self, core: ClientCore, spec: Spec) -> None:
        self._core = core
        self._spec = spec

    def where(self, field: str, operator: Operator, value: object) -> AsyncQuery:
        """Add a condition: `.where("rank", "<", 10)`.

        Example:
            open_todos = await todos.where("done", "==", False).fetch()
            print(len(open_todos))  # 2
        """
        return AsyncQuery(self._core, self._spec.where(field, operator, value))

    def filter(self, filter: Mapping[str, object]) -> AsyncQuery:  # noqa: A002 -- its name
        """Add a filter in the query language.

        Example:
            urgent = todos.filter({"$or": [{"rank": 1}, {"owner": "bob"}]})
            print(await urgent.count())  # 2
        """
        return AsyncQuery(self._core, self._spec.narrowed(filter))

    def sort(self, field: str, *, descending: bool = False) -> AsyncQuery:
        """Add a sort key after those already set: a field, or the time at which documents were
        created (`$created`) or last changed (`$updated`).

        Example:
            latest = await todos.sort("rank", descending=True).first()
            print(latest["title"])  # Water plants
        """
        return AsyncQuery(self._core, self._spec.sorted_by(field, descending=descending))

    def limit(self, limit: int) -> AsyncQuery:
        """Return at most this many documents.

        Example:
            print(len(await todos.sort("rank").limit(2).fetch()))  # 2
        """
        return AsyncQuery(self._core, self._spec.bounded(limit=limit))

    def offset(self, offset: int) -> AsyncQuery:
        """Skip this many documents.

        Example:
            rest = await todos.sort("rank").offset(2).fetch()
            print([todo["_id"] for todo in rest])  # ['plants']
        """
        return AsyncQuery(self._core, self._spec.bounded(offset=offset))

    def project(self, fields: Sequence[str] | Mapping[str, object]) -> AsyncQuery:
        """Return parts of the documents: names of fields, or a projection.

        Example:
            titles = await todos.sort("rank").project(["title"]).fetch()
            print(titles[0])  # {'_id': 'milk', 'title': 'Buy milk'}
        """
        return AsyncQuery(self._core, self._spec.projected(fields))

    def group(self, by: Sequence[str], measures: Mapping[str, Mapping[str, str]]) -> AsyncQuery:
        """Group documents with the same values of some fields into one row.

        `.group(["owner"], {"todos": {"op": "count"}})`; sort and window apply to the rows.

        Example:
            by_owner = todos.group(["owner"], {"todos": {"op": "count"}}).sort("owner")
            for row in await by_owner.fetch():
                print(row["owner"], row["todos"])  # ada 2, then bob 1
        """
        return AsyncQuery(self._core, self._spec.grouped(by, measures))

    def lookup(self, source: str, local: str, name: str) -> AsyncQuery:
        """Include the documents that each document refers to.

        The field `name` contains the document of the collection `source` whose id is in the field
        `local`, or the list of them: `.lookup("users", "owner", "user")`.

        Example:
            todo = await todos.lookup("users", "owner", "user").sort("rank").first()
            print(todo["user"]["name"])  # Ada
        """
        return AsyncQuery(self._core, self._spec.looking_up(source, local, name))

    async def fetch(self) -> list[Document]:
        """Return all documents, or at most `limit`.

        Example:
            for todo in await todos.where("owner", "==", "bob").fetch():
                print(todo["title"])  # Pay rent
        """
        return [document async for page in self.pages() for document in page]

    async def first(self) -> Document | None:
        """Return the first document, or None.

        Example:
            todo = await todos.sort("rank").first()
            print("Nothing to do" if todo is None else todo["title"])  # Buy milk
        """
        documents = await self.limit(1).fetch()
        return documents[0] if documents else None

    async def pages(self, size: int = PAGE) -> AsyncIterator[list[Document]]:
        """Yield the documents page by page, for results too large for memory.

        Example:
            async for page in todos.pages(size=2):
                print(len(page))  # 2, then 1
        """
        body, cursor = self._spec.body(), None
        if self._spec.group is not None:
            # Rows have no cursor: they are returned all at once, up to the server's limit.
            answer = await self._post("query", {"limit": ROWS, **body})
            yield [row["document"] for row in answer["rows"]]
            return
        left = self._spec.limit
        while left is None or left > 0:
            body["limit"] = size if left is None else min(left, size)
            if cursor is not None:
                body["cursor"] = cursor
                body.pop("offset", None)
            answer = await self._post("query", body)
            documents = [item["document"] for item in answer["items"]]
            yield documents
            cursor = answer["next_cursor"]
            if cursor is None:
                return
            left = None if left is None else left - len(documents)

    async def count(self) -> int:
        """Return the number of documents that match the filter.

        Example:
            print(await todos.where("done", "==", True).count())  # 1
        """
        answer = await self._post("count", {"filter": self._spec.filter})
        return int(answer["count"])

    def watch(self) -> AsyncIterator[Snapshot]:
        """Yield the answer, and again whenever it or the state changes.

        Writes of this client are included before the server has confirmed them.

        Example:
            async for snapshot in todos.where("done", "==", False).watch():
                print(len(snapshot.documents))  # 2
                break  # ends the subscription; without it, the loop continues with each change
        """
        return self._snapshots()

    def on_snapshot(self, listener: Callable[[Snapshot], object]) -> Callable[[], None]:
        """Call the listener with what `watch` yields; return a function that unsubscribes.

        If the subscription is rejected, the last snapshot has the state `failed` and an error.

        Example:
            unsubscribe = todos.on_snapshot(lambda snapshot: print(len(snapshot.documents)))
            unsubscribe()
        """
        return self._core.watchers.begin(self._snapshots(), listener)

    def changes(self) -> AsyncIterator[Result | Change]:
        """Yield the answer and then each change from the server, none lost or repeated.

        Example:
            async for event in todos.changes():
                print(event.type)  # result
                break  # without it, the loop continues with `add`, `change`, `move` and `remove`
        """
        return QueryWatcher(self._subscription(), self._core.connection, self._read).changes()

    async def to_pandas(self) -> pandas.DataFrame:
        """Return the documents as a data frame. Needs the extra `pandas`.

        Example:
            frame = await todos.sort("rank").to_pandas()
            print(frame["rank"].sum())  # 6
        """
        return to_pandas(await self.fetch())

    async def to_polars(self) -> polars.DataFrame:
        """Return the documents as a Polars data frame. Needs the extra `polars`.

        Example:
            frame = await todos.sort("rank").to_polars()
            print(frame["rank"].sum())  # 6
        """
        return polars_of(await self.to_arrow())

    async def to_arrow(self) -> pyarrow.Table:
        """Return the documents as a table. Needs the extra `arrow`.

        Example:
            table = await todos.to_arrow()
            print(table.num_rows)  # 3
        """
        return to_arrow(await self.fetch())

    def _snapshots(self) -> AsyncIterator[Snapshot]:
        local = (self._spec.plain(), self._core.local)
        query = self._subscription()
        return QueryWatcher(query, self._core.connection, self._read, local).snapshots()

    def _subscription(self) -> Document:
        return {"collection": self._spec.collection, **self._spec.body()}

    async def _read(self, identity: object) -> Item | None:
        path = address(self._spec.collection, f"documents/{ids.segment(identity)}")
        answer = await self._core.http.call(ApiRequest("GET", path))
        return Item(answer["id"], answer["version"], answer["document"])

    async def _post(self, call: str, body: Mapping[str, object]) -> Any:
        path = address(self._spec.collection, call)
        return await self._core.http.call(ApiRequest("POST", path, ejson.dumps(body)))
