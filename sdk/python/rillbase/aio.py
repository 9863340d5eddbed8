"""The asynchronous client. Everything else is built on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rillbase import ejson, ids
from rillbase.aggregates import AsyncAggregate
from rillbase.connection import Connection, ConnectionState
from rillbase.credentials import Credentials, GetToken
from rillbase.errors import ServerError
from rillbase.http import Http, Request
from rillbase.live import LiveQuery, Result, Snapshot
from rillbase.query import Operator, Spec
from rillbase.shapes import Document
from rillbase.tables import to_arrow, to_pandas
from rillbase.view import Change, Item
from rillbase.writes import Steps, Transaction, address, insert, new_key, one, together

if TYPE_CHECKING:
    import pandas
    import pyarrow

TIMEOUT_S = 30.0
PAGE = 1_000


@dataclass(frozen=True, slots=True)
class Envelope:
    """A document with what the server knows of it."""

    id: object
    version: int
    document: Document
    created_at: datetime | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Many:
    """How far a change of everything that matches a filter has come."""

    matched: int
    changed: int
    #: False: time ran out, and the call should be repeated.
    is_complete: bool


@dataclass(frozen=True, slots=True)
class Core:
    """The parts of a client, as its collections use them."""

    http: Http
    connection: Connection


class AsyncClient:
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
        """Name the server and who calls.

        `silence_s`: a connection that was silent for so long is given up; None: twice the
        server's heartbeat.
        """
        base = url.rstrip("/")
        credentials = Credentials(key, token, tenant, get_token)
        self._core = Core(
            Http(base, credentials, timeout_s), Connection(base, credentials, silence_s)
        )

    def collection(self, name: str) -> AsyncCollection:
        return AsyncCollection(self._core, Spec(name))

    def aggregate(self, name: str) -> AsyncAggregate:
        return AsyncAggregate(self._core, name)

    async def transaction(self, build: Callable[[Transaction], object]) -> list[Document]:
        """Do writes to any documents of which all are done or none."""
        steps = Transaction()
        build(steps)
        answer = await self._core.http.call(together("/v1/transactions", steps.operations))
        results: list[Document] = answer["results"]
        return results

    @property
    def state(self) -> ConnectionState:
        """How the connection is."""
        return self._core.connection.state

    async def aclose(self) -> None:
        """End all subscriptions and the connection."""
        await self._core.connection.close()
        self._core.http.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


class AsyncQuery:
    """A query, asked once or watched. Immutable: methods that narrow it return another one."""

    def __init__(self, core: Core, spec: Spec) -> None:
        self._core = core
        self._spec = spec

    def where(self, field: str, operator: Operator, value: object) -> AsyncQuery:
        return AsyncQuery(self._core, self._spec.where(field, operator, value))

    def filter(self, filter: Mapping[str, object]) -> AsyncQuery:  # noqa: A002 -- its name
        return AsyncQuery(self._core, self._spec.narrowed(filter))

    def sort(self, field: str, *, descending: bool = False) -> AsyncQuery:
        return AsyncQuery(self._core, self._spec.sorted_by(field, descending=descending))

    def limit(self, limit: int) -> AsyncQuery:
        return AsyncQuery(self._core, _with(self._spec, limit=limit))

    def offset(self, offset: int) -> AsyncQuery:
        return AsyncQuery(self._core, _with(self._spec, offset=offset))

    def project(self, fields: Sequence[str] | Mapping[str, object]) -> AsyncQuery:
        return AsyncQuery(self._core, self._spec.projected(fields))

    async def fetch(self) -> list[Document]:
        """Return the documents, all of them or as many as `limit` says."""
        return [document async for page in self.pages() for document in page]

    async def first(self) -> Document | None:
        found = await self.limit(1).fetch()
        return found[0] if found else None

    async def pages(self, size: int = PAGE) -> AsyncIterator[list[Document]]:
        """Yield the documents page by page, for answers too large to hold."""
        body, cursor = self._spec.body(), None
        left = self._spec.limit
        while left is None or left > 0:
            body["limit"] = size if left is None else min(left, size)
            if cursor is not None:
                body["cursor"] = cursor
                body.pop("offset", None)
            answer = await self._post("query", body)
            found = [item["document"] for item in answer["items"]]
            yield found
            cursor = answer["next_cursor"]
            if cursor is None:
                return
            left = None if left is None else left - len(found)

    async def count(self) -> int:
        answer = await self._post("count", {"filter": self._spec.filter})
        return int(answer["count"])

    def watch(self) -> AsyncIterator[Snapshot]:
        """Yield the answer, and again whenever it or the state has changed."""
        return self._live().snapshots()

    def changes(self) -> AsyncIterator[Result | Change]:
        """Yield the answer and then each change of it, nothing lost and nothing twice."""
        return self._live().changes()

    async def to_pandas(self) -> pandas.DataFrame:
        """Return the documents as a frame. Needs the extra `pandas`."""
        return to_pandas(await self.fetch())

    async def to_arrow(self) -> pyarrow.Table:
        """Return the documents as a table. Needs the extra `arrow`."""
        return to_arrow(await self.fetch())

    def _live(self) -> LiveQuery:
        query = {"collection": self._spec.collection, **self._spec.body()}
        return LiveQuery(query, self._core.connection, self._read)

    async def _read(self, identity: object) -> Item | None:
        path = address(self._spec.collection, f"documents/{ids.segment(identity)}")
        found = await self._core.http.call(Request("GET", path))
        return Item(found["id"], found["version"], found["document"])

    async def _post(self, call: str, body: Mapping[str, object]) -> Any:
        path = address(self._spec.collection, call)
        return await self._core.http.call(Request("POST", path, ejson.dumps(body)))


class AsyncCollection(AsyncQuery):
    """A collection: reads and writes of its documents, and queries over it."""

    @property
    def name(self) -> str:
        return self._spec.collection

    async def get(self, identity: object) -> Envelope | None:
        """Return a document, or None where there is none."""
        path = address(self.name, f"documents/{ids.segment(identity)}")
        try:
            return _envelope(await self._core.http.call(Request("GET", path)))
        except ServerError as error:
            if error.code == "not_found":
                return None
            raise

    async def get_many(self, identities: Sequence[object]) -> list[Envelope]:
        """Return those of the documents that there are."""
        answer = await self._post("documents:get", {"ids": list(identities)})
        return [_envelope(item) for item in answer["items"]]

    async def insert(self, document: Mapping[str, object]) -> Envelope:
        """Insert a document; without an `_id` it gets an `ObjectId`."""
        return _envelope(await self._core.http.call(insert(self.name, document)))

    async def replace(
        self, identity: object, document: Mapping[str, object], *, if_version: int | None = None
    ) -> Envelope:
        """Replace a document, or create it."""
        return await self._write(
            one("PUT", self.name, identity, dict(document), if_version=if_version)
        )

    async def update(
        self,
        identity: object,
        update: Mapping[str, object],
        *,
        upsert: bool = False,
        array_filters: Sequence[Mapping[str, object]] | None = None,
        if_version: int | None = None,
    ) -> Envelope:
        """Change a document by operators: `{"$set": {"done": True}}`."""
        request = one(
            "PATCH",
            self.name,
            identity,
            dict(update),
            upsert=upsert,
            array_filters=array_filters,
            if_version=if_version,
        )
        return await self._write(request)

    async def merge(
        self,
        identity: object,
        patch: Mapping[str, object],
        *,
        upsert: bool = False,
        if_version: int | None = None,
    ) -> Envelope:
        """Change the fields that the patch names; None removes one."""
        request = one(
            "PATCH",
            self.name,
            identity,
            dict(patch),
            merge=True,
            upsert=upsert,
            if_version=if_version,
        )
        return await self._write(request)

    async def delete(self, identity: object, *, if_version: int | None = None) -> None:
        """Delete a document."""
        await self._core.http.call(one("DELETE", self.name, identity, if_version=if_version))

    async def bulk(
        self, build: Callable[[Steps], object], *, ordered: bool = True
    ) -> list[Document]:
        """Do many operations in one call.

        All or none are done; unless ordered, each stands for itself, and its result or error has
        its place in what is returned.
        """
        steps = Steps()
        build(steps)
        path = address(self.name, "documents:bulk")
        answer = await self._core.http.call(together(path, steps.operations, ordered=ordered))
        results: list[Document] = answer["results"]
        return results

    async def update_many(
        self,
        filter: Mapping[str, object],  # noqa: A002
        update: Mapping[str, object],
    ) -> Many:
        """Change whatever matches the filter, in batches of a thousand."""
        return await self._many("documents:update", {"filter": filter, "update": update})

    async def delete_many(self, filter: Mapping[str, object]) -> Many:  # noqa: A002
        """Delete whatever matches the filter, in batches of a thousand."""
        return await self._many("documents:delete", {"filter": filter})

    async def _many(self, call: str, body: Mapping[str, object]) -> Many:
        # It is done in batches: one that broke off half way is not done once more unasked.
        path = address(self.name, call)
        request = Request("POST", path, ejson.dumps(body), idempotency_key=new_key(), once=True)
        found = await self._core.http.call(request)
        return Many(found["matched"], found["changed"], found["complete"])

    async def _write(self, request: Request) -> Envelope:
        return _envelope(await self._core.http.call(request))


def _with(spec: Spec, *, limit: int | None = None, offset: int | None = None) -> Spec:
    return Spec(
        spec.collection,
        spec.filter,
        spec.sort,
        spec.projection,
        spec.offset if offset is None else offset,
        spec.limit if limit is None else limit,
    )


def _envelope(body: Document) -> Envelope:
    """Return an answer's envelope; empty where the caller may write but not read."""
    return Envelope(
        body.get("id"),
        body.get("version", 0),
        body.get("document", {}),
        _moment(body.get("created_at")),
        _moment(body.get("updated_at")),
    )


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
