"""The same client without `await`: the asynchronous one, on a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from rillbase.aggregates import EVERYTHING, Added, AsyncAggregate, RowQuery, Rows
from rillbase.aio import TIMEOUT_S, AsyncClient, AsyncCollection, AsyncQuery, Envelope, Many
from rillbase.connection import ConnectionState
from rillbase.credentials import GetToken
from rillbase.live import Result, Snapshot
from rillbase.query import Operator
from rillbase.shapes import Document
from rillbase.view import Change
from rillbase.writes import Steps, Transaction

if TYPE_CHECKING:
    import pandas
    import pyarrow

T = TypeVar("T")


class Loop:
    """An event loop on a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="rillbase", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what comes of a coroutine."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            # Ctrl-C in the caller's thread ends what it waited for.
            future.cancel()
            raise

    def iterate(self, source: AsyncIterator[T]) -> Iterator[T]:
        """Yield what an asynchronous iterator yields."""
        try:
            while True:
                try:
                    yield self.run(_next(source))
                except StopAsyncIteration:
                    return
        finally:
            self.run(_close(source))

    def call(self, make: Callable[[], T]) -> T:
        """Return what a function returns that has to run on the loop."""

        async def made() -> T:
            return make()

        return self.run(made())

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _next(source: AsyncIterator[T]) -> T:
    return await anext(source)


async def _close(source: AsyncIterator[object]) -> None:
    close = getattr(source, "aclose", None)
    if close is not None:
        await close()


class Client:
    """A tenant's data."""

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        token: str | None = None,
        get_token: GetToken | None = None,
        tenant: str | None = None,
        timeout_s: float = TIMEOUT_S,
        silence_s: float | None = None,
    ) -> None:
        self._loop = Loop()
        self._client = self._loop.call(
            lambda: AsyncClient(
                url,
                key=key,
                token=token,
                get_token=get_token,
                tenant=tenant,
                timeout_s=timeout_s,
                silence_s=silence_s,
            )
        )

    def collection(self, name: str) -> Collection:
        return Collection(self._loop, self._client.collection(name))

    def aggregate(self, name: str) -> Aggregate:
        return Aggregate(self._loop, self._client.aggregate(name))

    def transaction(self, build: Callable[[Transaction], object]) -> list[Document]:
        """Do writes to any documents of which all are done or none."""
        return self._loop.run(self._client.transaction(build))

    @property
    def state(self) -> ConnectionState:
        """How the connection is."""
        return self._client.state

    def close(self) -> None:
        """End all subscriptions and the connection."""
        self._loop.run(self._client.aclose())
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Query:
    """A query, asked once or watched. Immutable: methods that narrow it return another one."""

    def __init__(self, loop: Loop, query: AsyncQuery) -> None:
        self._loop = loop
        self._query = query

    def where(self, field: str, operator: Operator, value: object) -> Query:
        return Query(self._loop, self._query.where(field, operator, value))

    def filter(self, filter: Mapping[str, object]) -> Query:  # noqa: A002 -- its name
        return Query(self._loop, self._query.filter(filter))

    def sort(self, field: str, *, descending: bool = False) -> Query:
        return Query(self._loop, self._query.sort(field, descending=descending))

    def limit(self, limit: int) -> Query:
        return Query(self._loop, self._query.limit(limit))

    def offset(self, offset: int) -> Query:
        return Query(self._loop, self._query.offset(offset))

    def project(self, fields: Sequence[str] | Mapping[str, object]) -> Query:
        return Query(self._loop, self._query.project(fields))

    def fetch(self) -> list[Document]:
        """Return the documents, all of them or as many as `limit` says."""
        return self._loop.run(self._query.fetch())

    def first(self) -> Document | None:
        return self._loop.run(self._query.first())

    def pages(self, size: int = 1_000) -> Iterator[list[Document]]:
        """Yield the documents page by page, for answers too large to hold."""
        return self._loop.iterate(self._query.pages(size))

    def count(self) -> int:
        return self._loop.run(self._query.count())

    def watch(self) -> Iterator[Snapshot]:
        """Yield the answer, and again whenever it or the state has changed."""
        return self._loop.iterate(self._loop.call(self._query.watch))

    def changes(self) -> Iterator[Result | Change]:
        """Yield the answer and then each change of it, nothing lost and nothing twice."""
        return self._loop.iterate(self._loop.call(self._query.changes))

    def to_pandas(self) -> pandas.DataFrame:
        """Return the documents as a frame. Needs the extra `pandas`."""
        return self._loop.run(self._query.to_pandas())

    def to_arrow(self) -> pyarrow.Table:
        """Return the documents as a table. Needs the extra `arrow`."""
        return self._loop.run(self._query.to_arrow())


class Collection(Query):
    """A collection: reads and writes of its documents, and queries over it."""

    def __init__(self, loop: Loop, collection: AsyncCollection) -> None:
        super().__init__(loop, collection)
        self._collection = collection

    @property
    def name(self) -> str:
        return self._collection.name

    def get(self, identity: object) -> Envelope | None:
        """Return a document, or None where there is none."""
        return self._loop.run(self._collection.get(identity))

    def get_many(self, identities: Sequence[object]) -> list[Envelope]:
        """Return those of the documents that there are."""
        return self._loop.run(self._collection.get_many(identities))

    def insert(self, document: Mapping[str, object]) -> Envelope:
        """Insert a document; without an `_id` it gets an `ObjectId`."""
        return self._loop.run(self._collection.insert(document))

    def replace(
        self, identity: object, document: Mapping[str, object], *, if_version: int | None = None
    ) -> Envelope:
        """Replace a document, or create it."""
        return self._loop.run(self._collection.replace(identity, document, if_version=if_version))

    def update(
        self,
        identity: object,
        update: Mapping[str, object],
        *,
        upsert: bool = False,
        array_filters: Sequence[Mapping[str, object]] | None = None,
        if_version: int | None = None,
    ) -> Envelope:
        """Change a document by operators: `{"$set": {"done": True}}`."""
        return self._loop.run(
            self._collection.update(
                identity,
                update,
                upsert=upsert,
                array_filters=array_filters,
                if_version=if_version,
            )
        )

    def merge(
        self,
        identity: object,
        patch: Mapping[str, object],
        *,
        upsert: bool = False,
        if_version: int | None = None,
    ) -> Envelope:
        """Change the fields that the patch names; None removes one."""
        return self._loop.run(
            self._collection.merge(identity, patch, upsert=upsert, if_version=if_version)
        )

    def delete(self, identity: object, *, if_version: int | None = None) -> None:
        """Delete a document."""
        self._loop.run(self._collection.delete(identity, if_version=if_version))

    def bulk(self, build: Callable[[Steps], object], *, ordered: bool = True) -> list[Document]:
        """Do many operations in one call, all of them or, unless ordered, each for itself."""
        return self._loop.run(self._collection.bulk(build, ordered=ordered))

    def update_many(
        self,
        filter: Mapping[str, object],  # noqa: A002
        update: Mapping[str, object],
    ) -> Many:
        """Change whatever matches the filter, in batches of a thousand."""
        return self._loop.run(self._collection.update_many(filter, update))

    def delete_many(self, filter: Mapping[str, object]) -> Many:  # noqa: A002
        """Delete whatever matches the filter, in batches of a thousand."""
        return self._loop.run(self._collection.delete_many(filter))


class Aggregate:
    """One aggregate: events go in, rows come out, once or as they change."""

    def __init__(self, loop: Loop, aggregate: AsyncAggregate) -> None:
        self._loop = loop
        self._aggregate = aggregate

    @property
    def name(self) -> str:
        return self._aggregate.name

    def add(self, *events: Mapping[str, object]) -> Added:
        """Add events, all of them or none. A call that is repeated adds them once."""
        return self._loop.run(self._aggregate.add(*events))

    def query(self, asked: RowQuery = EVERYTHING, *, snapshot: str | None = None) -> Rows:
        """Return rows. `snapshot`: `fresh`, or the one of an earlier answer."""
        return self._loop.run(self._aggregate.query(asked, snapshot=snapshot))

    def watch(self, asked: RowQuery = EVERYTHING) -> Iterator[Snapshot]:
        """Yield the rows, and again whenever they or the state have changed."""
        return self._loop.iterate(self._aggregate.watch(asked))

    def changes(self, asked: RowQuery = EVERYTHING) -> Iterator[Result | Change]:
        """Yield the rows and then each that changes."""
        return self._loop.iterate(self._aggregate.changes(asked))
