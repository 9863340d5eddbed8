"""The asynchronous client. The synchronous one wraps it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Self, Unpack

from rillbase import ejson, ids
from rillbase.aggregates import AsyncAggregate
from rillbase.async_query import AsyncQuery
from rillbase.connection import ConnectionState
from rillbase.core import core
from rillbase.datasets import AsyncDataset
from rillbase.envelope import Envelope, Many, envelope
from rillbase.errors import ServerError
from rillbase.http import ApiRequest
from rillbase.local.pending import Kind
from rillbase.options import Options as ClientOptions
from rillbase.query import Spec
from rillbase.shapes import Document
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


class AsyncClient:
    """A tenant's data."""

    def __init__(self, url: str, **options: Unpack[ClientOptions]) -> None:
        """Create a client for a server, with its credentials and options.

        Example:
            async with AsyncClient("http://127.0.0.1:8080", key="rbk_…") as db:
                print(await db.collection("todos").count())  # 3
        """
        self._core = core(url.rstrip("/"), options)

    def collection(self, name: str) -> AsyncCollection:
        """Return a collection.

        Example:
            todos = db.collection("todos")
            print(await todos.count())  # 3
        """
        return AsyncCollection(self._core, Spec(name))

    def aggregate(self, name: str) -> AsyncAggregate:
        """Return an aggregate.

        Example:
            visits = db.aggregate("visits")
            await visits.add({"page": "/"})
        """
        return AsyncAggregate(self._core, name)

    def dataset(self, name: str) -> AsyncDataset:
        """Return a dataset of analytics tables.

        Example:
            sales = db.dataset("sales")
            print(sales.name)  # sales
        """
        return AsyncDataset(self._core, name)

    async def transaction(self, build: Callable[[Transaction], object]) -> list[Document]:
        """Run writes to any documents; all of them succeed or none.

        Example:
            results = await db.transaction(
                lambda steps: [
                    steps.collection("todos").delete("rent"),
                    steps.collection("users").update("bob", {"$inc": {"todos": -1}}),
                ]
            )
            print(len(results))  # 2
        """
        steps = Transaction()
        build(steps)
        answer = await self._core.outbox.submit(transaction(steps.gathered))
        results: list[Document] = answer["results"]
        return results

    @property
    def state(self) -> ConnectionState:
        """The state of the connection.

        Example:
            print(db.state)  # idle
        """
        return self._core.connection.state

    def on_state(self, listener: Callable[[ConnectionState], object]) -> Callable[[], None]:
        """Call the listener when the connection's state changes; return a function to stop it.

        Example:
            stop = db.on_state(lambda state: print("The connection is", state))
            stop()
        """
        return self._core.connection.listeners.add(listener)

    @property
    def queued_writes(self) -> int:
        """The number of queued writes.

        Example:
            print(db.queued_writes)  # 0
        """
        return 0 if self._core.queue is None else len(self._core.queue)

    def send_queued(self) -> None:
        """Send the writes that an earlier run of the program left in the queue's file.

        Entering the client does this too, and so does the first write.

        Example:
            db = AsyncClient("http://127.0.0.1:8080", key="rbk_…", queue="writes.db")
            db.send_queued()
        """
        if self._core.queue is not None:
            self._core.queue.start()

    async def aclose(self) -> None:
        """End all subscriptions and the connection. Queued writes stay in the queue's file.

        Example:
            db = AsyncClient("http://127.0.0.1:8080", key="rbk_…")
            print(await db.collection("todos").count())  # 3
            await db.aclose()
        """
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


class AsyncCollection(AsyncQuery):
    """A collection: reads and writes of its documents, and queries."""

    @property
    def name(self) -> str:
        """The name of the collection.

        Example:
            print(todos.name)  # todos
        """
        return self._spec.collection

    async def get(self, identity: object) -> Envelope | None:
        """Return a document, or None if it does not exist.

        Example:
            todo = await todos.get("milk")
            print(todo.id, todo.document["title"])  # milk Buy milk
        """
        path = address(self.name, f"documents/{ids.segment(identity)}")
        try:
            return envelope(await self._core.http.call(ApiRequest("GET", path)))
        except ServerError as error:
            if error.code == "not_found":
                return None
            raise

    async def get_many(self, identities: Sequence[object]) -> list[Envelope]:
        """Return the documents that exist.

        Example:
            for todo in await todos.get_many(["milk", "none"]):
                print(todo.id)  # milk
        """
        answer = await self._post("documents:get", {"ids": list(identities)})
        return [envelope(item) for item in answer["items"]]

    async def insert(self, document: Mapping[str, object]) -> Envelope:
        """Insert a document; without an `_id` it gets an `ObjectId`.

        Example:
            todo = await todos.insert({"title": "Call Ada", "done": False})
            print(todo.version)  # 1
        """
        return await self._write(insertion(self.name, document))

    async def replace(
        self, identity: object, document: Mapping[str, object], *, if_version: int | None = None
    ) -> Envelope:
        """Create or replace a document.

        Example:
            todo = await todos.replace("milk", {"title": "Buy oat milk"})
            print(todo.document)  # {'_id': 'milk', 'title': 'Buy oat milk'}
        """
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
        """Change a document with operators: `{"$set": {"done": True}}`.

        Example:
            todo = await todos.update("milk", {"$set": {"done": True}, "$inc": {"rank": 1}})
            print(todo.document["done"], todo.document["rank"])  # True 2
        """
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
        """Change the fields of the patch; None removes a field.

        Example:
            todo = await todos.merge("milk", {"done": True, "owner": None})
            print("owner" in todo.document)  # False
        """
        options = WriteOptions(upsert=upsert, if_version=if_version)
        return await self._change("merge", identity, patch, options)

    async def delete(self, identity: object, *, if_version: int | None = None) -> None:
        """Delete a document.

        Example:
            await todos.delete("milk")
            print(await todos.get("milk"))  # None
        """
        options = WriteOptions(if_version=if_version)
        await self._core.outbox.submit(single(step("delete", self.name, identity, None, options)))

    async def bulk(
        self, build: Callable[[Steps], object], *, ordered: bool = True
    ) -> list[Document]:
        """Run many operations in one call.

        All of them succeed or none; unless ordered, each is independent, and the returned list has
        its result or error in the same position.

        Example:
            results = await todos.bulk(lambda steps: steps.insert({"_id": "call"}).delete("rent"))
            print(results[0]["id"])  # call
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
        """Update all documents that match the filter, in batches of a thousand.

        Example:
            many = await todos.update_many({"owner": "ada"}, {"$set": {"done": True}})
            print(many.changed)  # 2
        """
        return await self._many("documents:update", {"filter": filter, "update": update})

    async def delete_many(self, filter: Mapping[str, object]) -> Many:  # noqa: A002
        """Delete all documents that match the filter, in batches of a thousand.

        Example:
            many = await todos.delete_many({"done": True})
            print(many.changed)  # 1
        """
        return await self._many("documents:delete", {"filter": filter})

    async def _many(self, call: str, body: Mapping[str, object]) -> Many:
        path = address(self.name, call)
        request = ApiRequest("POST", path, ejson.dumps(body), idempotency_key=new_key())
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
