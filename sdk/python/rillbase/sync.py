"""The synchronous client. Its calls are implemented in `aio`; here they block until the result
arrives.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import Concatenate, ParamSpec, Self, Unpack

from rillbase.aggregates import AsyncAggregate
from rillbase.aio import AsyncClient, AsyncCollection
from rillbase.async_query import AsyncQuery
from rillbase.connection import ConnectionState
from rillbase.datasets import AsyncDataset
from rillbase.facades import (
    A,
    LoopThread,
    SyncFacade,
    beginning,
    blocking,
    iterating,
    notifying,
    synchronous,
)
from rillbase.options import Options

P = ParamSpec("P")


class Client(SyncFacade):
    """A tenant's data."""

    _inner: AsyncClient

    def __init__(self, url: str, **options: Unpack[Options]) -> None:
        """Create a client for a server, with its credentials and options.

        Example:
            with Client("http://127.0.0.1:8080", key="rbk_…") as db:
                print(db.collection("todos").count())  # 3
        """
        loop = LoopThread()
        try:
            super().__init__(loop, loop.call(lambda: AsyncClient(url, **options)))
            loop.call(self._inner.send_queued)
        except BaseException:
            loop.close()
            raise

    def collection(self, name: str) -> Collection:
        """Return a collection.

        Example:
            todos = db.collection("todos")
            print(todos.count())  # 3
        """
        return Collection(self._loop, self._inner.collection(name))

    def aggregate(self, name: str) -> Aggregate:
        """Return an aggregate.

        Example:
            visits = db.aggregate("visits")
            visits.add({"page": "/"})
        """
        return Aggregate(self._loop, self._inner.aggregate(name))

    def dataset(self, name: str) -> Dataset:
        """Return a dataset of analytics tables.

        Example:
            sales = db.dataset("sales")
            print(sales.name)  # sales
        """
        return Dataset(self._loop, self._inner.dataset(name))

    transaction = blocking(AsyncClient.transaction)
    on_state = notifying(AsyncClient.on_state)

    @property
    def state(self) -> ConnectionState:
        """The state of the connection.

        Example:
            print(db.state)  # idle
        """
        return self._inner.state

    @property
    def queued_writes(self) -> int:
        """The number of queued writes.

        Example:
            print(db.queued_writes)  # 0
        """
        return self._inner.queued_writes

    def close(self) -> None:
        """End all subscriptions and the connection. Queued writes stay in the queue's file.

        Example:
            db = Client("http://127.0.0.1:8080", key="rbk_…")
            print(db.collection("todos").count())  # 3
            db.close()
        """
        self._loop.run(self._inner.aclose())
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


def _narrowing(
    call: Callable[Concatenate[A, P], AsyncQuery],
) -> Callable[Concatenate[SyncFacade, P], Query]:
    """Make a call that returns another query."""

    @wraps(call)
    def made(facade: SyncFacade, /, *args: P.args, **kwargs: P.kwargs) -> Query:
        return Query(facade._loop, call(facade._inner, *args, **kwargs))

    made.__doc__ = synchronous(call.__doc__)
    return made


class _NamedFacade(SyncFacade):
    """An object with a name within its tenant."""

    _inner: AsyncCollection | AsyncAggregate | AsyncDataset

    @property
    def name(self) -> str:
        """The name within the tenant.

        Example:
            print(todos.name)  # todos
        """
        return self._inner.name


class Query(SyncFacade):
    """A query, run once or subscribed to. Immutable: methods that narrow it return another one."""

    where = _narrowing(AsyncQuery.where)
    filter = _narrowing(AsyncQuery.filter)
    sort = _narrowing(AsyncQuery.sort)
    limit = _narrowing(AsyncQuery.limit)
    offset = _narrowing(AsyncQuery.offset)
    project = _narrowing(AsyncQuery.project)
    group = _narrowing(AsyncQuery.group)
    lookup = _narrowing(AsyncQuery.lookup)

    fetch = blocking(AsyncQuery.fetch)
    first = blocking(AsyncQuery.first)
    pages = iterating(AsyncQuery.pages)
    count = blocking(AsyncQuery.count)
    watch = iterating(AsyncQuery.watch)
    on_snapshot = notifying(AsyncQuery.on_snapshot)
    changes = iterating(AsyncQuery.changes)
    to_pandas = blocking(AsyncQuery.to_pandas)
    to_polars = blocking(AsyncQuery.to_polars)
    to_arrow = blocking(AsyncQuery.to_arrow)


class Collection(_NamedFacade, Query):
    """A collection: reads and writes of its documents, and queries."""

    _inner: AsyncCollection

    @property
    def later(self) -> Later:
        """The same writes without waiting: they return a future immediately.

        Example:
            first = todos.later.update("milk", {"$set": {"done": True}})
            second = todos.later.delete("rent")
            print(first.result().document["done"], second.result())  # True None
        """
        return Later(self._loop, self._inner)

    get = blocking(AsyncCollection.get)
    get_many = blocking(AsyncCollection.get_many)
    insert = blocking(AsyncCollection.insert)
    replace = blocking(AsyncCollection.replace)
    update = blocking(AsyncCollection.update)
    merge = blocking(AsyncCollection.merge)
    delete = blocking(AsyncCollection.delete)
    bulk = blocking(AsyncCollection.bulk)
    update_many = blocking(AsyncCollection.update_many)
    delete_many = blocking(AsyncCollection.delete_many)


class Later(SyncFacade):
    """The writes of a collection, made in order without waiting for the results."""

    insert = beginning(AsyncCollection.insert)
    replace = beginning(AsyncCollection.replace)
    update = beginning(AsyncCollection.update)
    merge = beginning(AsyncCollection.merge)
    delete = beginning(AsyncCollection.delete)
    bulk = beginning(AsyncCollection.bulk)


class Aggregate(_NamedFacade):
    """One aggregate: adding events, and reading rows, once or as they change."""

    _inner: AsyncAggregate

    add = blocking(AsyncAggregate.add)
    query = blocking(AsyncAggregate.query)
    watch = iterating(AsyncAggregate.watch)
    on_snapshot = notifying(AsyncAggregate.on_snapshot)
    changes = iterating(AsyncAggregate.changes)


class Dataset(_NamedFacade):
    """A dataset: rows are uploaded, and queried as fresh as needed."""

    _inner: AsyncDataset

    upload = blocking(AsyncDataset.upload)
    query = blocking(AsyncDataset.query)
    sql = blocking(AsyncDataset.sql)
    to_arrow = blocking(AsyncDataset.to_arrow)
    to_pandas = blocking(AsyncDataset.to_pandas)
    to_polars = blocking(AsyncDataset.to_polars)
    definition = blocking(AsyncDataset.definition)
    pipeline = blocking(AsyncDataset.pipeline)
