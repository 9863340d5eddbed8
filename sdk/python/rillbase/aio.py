"""The asynchronous client. The synchronous one wraps it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from rillbase import ejson, ids
from rillbase.aggregates import AsyncAggregate
from rillbase.connection import ConnectionState
from rillbase.core import ClientCore, core
from rillbase.datasets import AsyncDataset
from rillbase.envelope import Envelope, Many, envelope
from rillbase.errors import ServerError
from rillbase.http import ApiRequest
from rillbase.live import QueryWatcher, Result, Snapshot
from rillbase.local.pending import Kind
from rillbase.options import Options as ClientOptions
from rillbase.query import Operator, Spec
from rillbase.shapes import Document
from rillbase.tables import to_arrow, to_pandas
from rillbase.view import Change, Item
from rillbase.writes.calls import (
    WriteOptions,
    WriteStep,
    address,
    bulk,
    insertion,
    new_key,
    single,
    step,
    transaction,
)
from rillbase.writes.steps import Steps, Transaction

if TYPE_CHECKING:
    import pandas
    import pyarrow

PAGE = 1_000
#: The maximum number of groups that the server returns.
ROWS = 10_000


class AsyncClient:
    """A tenant's data."""

    def __init__(self, url: str, **options: Unpack[ClientOptions]) -> None:
        """Create a client for a server, with its credentials and options."""
        self._core = core(url.rstrip("/"), options)

    def collection(self, name: str) -> AsyncCollection:
        return AsyncCollection(self._core, Spec(name))

    def aggregate(self, name: str) -> AsyncAggregate:
        return AsyncAggregate(self._core, name)

    def dataset(self, name: str) -> AsyncDataset:
        return AsyncDataset(self._core, name)

    async def transaction(self, build: Callable[[Transaction], object]) -> list[Document]:
        """Run writes to any documents; all of them succeed or none."""
        steps = Transaction()
        build(steps)
        answer = await self._core.outbox.submit(transaction(steps.gathered))
        results: list[Document] = answer["results"]
        return results

    @property
    def state(self) -> ConnectionState:
        """The state of the connection."""
        return self._core.connection.state

    def on_state(self, listener: Callable[[ConnectionState], object]) -> Callable[[], None]:
        """Call the listener when the connection's state changes; return a function to stop it."""
        return self._core.connection.listeners.add(listener)

    @property
    def queued_writes(self) -> int:
        """The number of queued writes."""
        return 0 if self._core.queue is None else len(self._core.queue)

    def send_queued(self) -> None:
        """Send the writes that an earlier run of the program left in the queue's file.

        Entering the client does this too, and so does the first write.
        """
        if self._core.queue is not None:
            self._core.queue.start()

    async def aclose(self) -> None:
        """End all subscriptions and the connection. Queued writes stay in the queue's file."""
        await self._core.close()

    async def __aenter__(self) -> Self:
        self.send_queued()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


class AsyncQuery:
    """A query, run once or subscribed to. Immutable: methods that narrow it return another one."""

    def __init__(self, core: ClientCore, spec: Spec) -> None:
        self._core = core
        self._spec = spec

    def where(self, field: str, operator: Operator, value: object) -> AsyncQuery:
        return AsyncQuery(self._core, self._spec.where(field, operator, value))

    def filter(self, filter: Mapping[str, object]) -> AsyncQuery:  # noqa: A002 -- its name
        return AsyncQuery(self._core, self._spec.narrowed(filter))

    def sort(self, field: str, *, descending: bool = False) -> AsyncQuery:
        return AsyncQuery(self._core, self._spec.sorted_by(field, descending=descending))

    def limit(self, limit: int) -> AsyncQuery:
        return AsyncQuery(self._core, self._spec.bounded(limit=limit))

    def offset(self, offset: int) -> AsyncQuery:
        return AsyncQuery(self._core, self._spec.bounded(offset=offset))

    def project(self, fields: Sequence[str] | Mapping[str, object]) -> AsyncQuery:
        return AsyncQuery(self._core, self._spec.projected(fields))

    def group(self, by: Sequence[str], measures: Mapping[str, Mapping[str, str]]) -> AsyncQuery:
        """Group documents with the same values of some fields into one row.

        `.group(["owner"], {"todos": {"op": "count"}})`; sort and window apply to the rows.
        """
        return AsyncQuery(self._core, self._spec.grouped(by, measures))

    def lookup(self, source: str, local: str, name: str) -> AsyncQuery:
        """Include the documents that each document refers to.

        The field `name` contains the document of the collection `source` whose id is in the field
        `local`, or the list of them: `.lookup("users", "owner", "user")`.
        """
        return AsyncQuery(self._core, self._spec.looking_up(source, local, name))

    async def fetch(self) -> list[Document]:
        """Return all documents, or at most `limit`."""
        return [document async for page in self.pages() for document in page]

    async def first(self) -> Document | None:
        documents = await self.limit(1).fetch()
        return documents[0] if documents else None

    async def pages(self, size: int = PAGE) -> AsyncIterator[list[Document]]:
        """Yield the documents page by page, for results too large for memory."""
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
        answer = await self._post("count", {"filter": self._spec.filter})
        return int(answer["count"])

    def watch(self) -> AsyncIterator[Snapshot]:
        """Yield the answer, and again whenever it or the state changes.

        Writes of this client are included before the server has confirmed them.
        """
        return self._snapshots()

    def on_snapshot(self, listener: Callable[[Snapshot], object]) -> Callable[[], None]:
        """Call the listener with what `watch` yields; return a function that unsubscribes.

        If the subscription is rejected, the last snapshot has the state `failed` and an error.
        """
        return self._core.watchers.begin(self._snapshots(), listener)

    def changes(self) -> AsyncIterator[Result | Change]:
        """Yield the answer and then each change from the server, none lost or repeated."""
        return QueryWatcher(self._subscription(), self._core.connection, self._read).changes()

    async def to_pandas(self) -> pandas.DataFrame:
        """Return the documents as a data frame. Needs the extra `pandas`."""
        return to_pandas(await self.fetch())

    async def to_arrow(self) -> pyarrow.Table:
        """Return the documents as a table. Needs the extra `arrow`."""
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


class AsyncCollection(AsyncQuery):
    """A collection: reads and writes of its documents, and queries."""

    @property
    def name(self) -> str:
        return self._spec.collection

    async def get(self, identity: object) -> Envelope | None:
        """Return a document, or None if it does not exist."""
        path = address(self.name, f"documents/{ids.segment(identity)}")
        try:
            return envelope(await self._core.http.call(ApiRequest("GET", path)))
        except ServerError as error:
            if error.code == "not_found":
                return None
            raise

    async def get_many(self, identities: Sequence[object]) -> list[Envelope]:
        """Return the documents that exist."""
        answer = await self._post("documents:get", {"ids": list(identities)})
        return [envelope(item) for item in answer["items"]]

    async def insert(self, document: Mapping[str, object]) -> Envelope:
        """Insert a document; without an `_id` it gets an `ObjectId`."""
        return await self._write(insertion(self.name, document))

    async def replace(
        self, identity: object, document: Mapping[str, object], *, if_version: int | None = None
    ) -> Envelope:
        """Create or replace a document."""
        options = WriteOptions(if_version=if_version)
        return await self._change("replace", identity, document, options)

    async def update(
        self,
        identity: object,
        update: Mapping[str, object],
        *,
        upsert: bool = False,
        array_filters: Sequence[Mapping[str, object]] | None = None,
        if_version: int | None = None,
    ) -> Envelope:
        """Change a document with operators: `{"$set": {"done": True}}`."""
        options = WriteOptions(upsert=upsert, array_filters=array_filters, if_version=if_version)
        return await self._change("update", identity, update, options)

    async def merge(
        self,
        identity: object,
        patch: Mapping[str, object],
        *,
        upsert: bool = False,
        if_version: int | None = None,
    ) -> Envelope:
        """Change the fields of the patch; None removes a field."""
        options = WriteOptions(upsert=upsert, if_version=if_version)
        return await self._change("merge", identity, patch, options)

    async def delete(self, identity: object, *, if_version: int | None = None) -> None:
        """Delete a document."""
        options = WriteOptions(if_version=if_version)
        await self._core.outbox.submit(single(step("delete", self.name, identity, None, options)))

    async def bulk(
        self, build: Callable[[Steps], object], *, ordered: bool = True
    ) -> list[Document]:
        """Run many operations in one call.

        All of them succeed or none; unless ordered, each is independent, and the returned list has
        its result or error in the same position.
        """
        steps = Steps(self.name)
        build(steps)
        answer = await self._core.outbox.submit(bulk(self.name, steps.gathered, ordered=ordered))
        results: list[Document] = answer["results"]
        return results

    async def update_many(
        self,
        filter: Mapping[str, object],  # noqa: A002
        update: Mapping[str, object],
    ) -> Many:
        """Update all documents that match the filter, in batches of a thousand."""
        return await self._many("documents:update", {"filter": filter, "update": update})

    async def delete_many(self, filter: Mapping[str, object]) -> Many:  # noqa: A002
        """Delete all documents that match the filter, in batches of a thousand."""
        return await self._many("documents:delete", {"filter": filter})

    async def _many(self, call: str, body: Mapping[str, object]) -> Many:
        # It runs in batches: if it fails halfway, it is not retried automatically.
        path = address(self.name, call)
        request = ApiRequest("POST", path, ejson.dumps(body), idempotency_key=new_key(), once=True)
        answer = await self._core.http.call(request)
        return Many(answer["matched"], answer["changed"], answer["complete"])

    async def _change(
        self,
        kind: Kind,
        identity: object,
        body: Mapping[str, object],
        options: WriteOptions,
    ) -> Envelope:
        return await self._write(step(kind, self.name, identity, body, options))

    async def _write(self, write_step: WriteStep) -> Envelope:
        return envelope(await self._core.outbox.submit(single(write_step)))
