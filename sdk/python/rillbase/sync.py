"""The synchronous client. Its calls are implemented in `aio`; here they wait."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Concatenate, ParamSpec, Self, Unpack

from rillbase.aggregates import AsyncAggregate
from rillbase.aio import AsyncClient, AsyncCollection, AsyncQuery
from rillbase.connection import ConnectionState
from rillbase.datasets import AsyncDataset
from rillbase.faces import A, Face, LoopThread, beginning, iterating, notifying, waiting
from rillbase.options import Options

P = ParamSpec("P")


class Client(Face):
    """A tenant's data."""

    _inner: AsyncClient

    def __init__(self, url: str, **options: Unpack[Options]) -> None:
        """Create a client for a server, with its credentials and options."""
        loop = LoopThread()
        try:
            super().__init__(loop, loop.call(lambda: AsyncClient(url, **options)))
            loop.call(self._inner.send_queued)
        except BaseException:
            loop.close()
            raise

    def collection(self, name: str) -> Collection:
        return Collection(self._loop, self._inner.collection(name))

    def aggregate(self, name: str) -> Aggregate:
        return Aggregate(self._loop, self._inner.aggregate(name))

    def dataset(self, name: str) -> Dataset:
        return Dataset(self._loop, self._inner.dataset(name))

    transaction = waiting(AsyncClient.transaction)
    on_state = notifying(AsyncClient.on_state)

    @property
    def state(self) -> ConnectionState:
        """The state of the connection."""
        return self._inner.state

    @property
    def queued_writes(self) -> int:
        """The number of queued writes."""
        return self._inner.queued_writes

    def close(self) -> None:
        """End all subscriptions and the connection. Queued writes stay in the queue's file."""
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
) -> Callable[Concatenate[Face, P], Query]:
    """Make a call that returns another query."""

    def made(face: Face, /, *args: P.args, **kwargs: P.kwargs) -> Query:
        return Query(face._loop, call(face._inner, *args, **kwargs))

    made.__doc__ = call.__doc__
    return made


class _NamedFace(Face):
    """An object with a name within its tenant."""

    _inner: AsyncCollection | AsyncAggregate | AsyncDataset

    @property
    def name(self) -> str:
        return self._inner.name


class Query(Face):
    """A query, run once or watched. Immutable: methods that narrow it return another one."""

    where = _narrowing(AsyncQuery.where)
    filter = _narrowing(AsyncQuery.filter)
    sort = _narrowing(AsyncQuery.sort)
    limit = _narrowing(AsyncQuery.limit)
    offset = _narrowing(AsyncQuery.offset)
    project = _narrowing(AsyncQuery.project)
    group = _narrowing(AsyncQuery.group)
    lookup = _narrowing(AsyncQuery.lookup)

    fetch = waiting(AsyncQuery.fetch)
    first = waiting(AsyncQuery.first)
    pages = iterating(AsyncQuery.pages)
    count = waiting(AsyncQuery.count)
    watch = iterating(AsyncQuery.watch)
    on_snapshot = notifying(AsyncQuery.on_snapshot)
    changes = iterating(AsyncQuery.changes)
    to_pandas = waiting(AsyncQuery.to_pandas)
    to_arrow = waiting(AsyncQuery.to_arrow)


class Collection(_NamedFace, Query):
    """A collection: reads and writes of its documents, and queries over it."""

    _inner: AsyncCollection

    @property
    def later(self) -> Later:
        """The same writes without waiting: they return a future at once."""
        return Later(self._loop, self._inner)

    get = waiting(AsyncCollection.get)
    get_many = waiting(AsyncCollection.get_many)
    insert = waiting(AsyncCollection.insert)
    replace = waiting(AsyncCollection.replace)
    update = waiting(AsyncCollection.update)
    merge = waiting(AsyncCollection.merge)
    delete = waiting(AsyncCollection.delete)
    bulk = waiting(AsyncCollection.bulk)
    update_many = waiting(AsyncCollection.update_many)
    delete_many = waiting(AsyncCollection.delete_many)


class Later(Face):
    """The writes of a collection, made in order and not waited for."""

    insert = beginning(AsyncCollection.insert)
    replace = beginning(AsyncCollection.replace)
    update = beginning(AsyncCollection.update)
    merge = beginning(AsyncCollection.merge)
    delete = beginning(AsyncCollection.delete)
    bulk = beginning(AsyncCollection.bulk)


class Aggregate(_NamedFace):
    """One aggregate: events go in, rows come out, once or as they change."""

    _inner: AsyncAggregate

    add = waiting(AsyncAggregate.add)
    query = waiting(AsyncAggregate.query)
    watch = iterating(AsyncAggregate.watch)
    on_snapshot = notifying(AsyncAggregate.on_snapshot)
    changes = iterating(AsyncAggregate.changes)


class Dataset(_NamedFace):
    """A dataset: rows are uploaded, and queried as fresh as needed."""

    _inner: AsyncDataset

    upload = waiting(AsyncDataset.upload)
    query = waiting(AsyncDataset.query)
    to_arrow = waiting(AsyncDataset.to_arrow)
    to_pandas = waiting(AsyncDataset.to_pandas)
    pipeline = waiting(AsyncDataset.pipeline)
