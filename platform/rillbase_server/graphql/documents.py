"""Fields over any collection. Documents, filters and updates are JSON, as in the REST API."""

from __future__ import annotations

from typing import Annotated, cast

import strawberry
from strawberry.scalars import JSON

from connections import messages
from data_plane.internal_call import InternalCall
from documents.api import bulk, by_filter, queries
from documents.api import messages as document_messages
from foundation.api.rendering import exact_json
from foundation.json_types import JsonObject, JsonValue
from rillbase_server.graphql import global_ids, pages
from rillbase_server.graphql.context import Context, Info, Reference, reference
from rillbase_server.graphql.pages import DocumentsPage

Collection = Annotated[str, strawberry.argument(description="The collection's name.")]
Key = Annotated[JSON, strawberry.argument(description="The document's `_id`, as Extended JSON.")]
LookedUp = Annotated[
    JSON | None,
    strawberry.argument(
        description="Documents to include with each document: a list of `{from, local, as}`."
    ),
]


@strawberry.interface(
    name="Node", description="An object with an id that is unique in the whole schema."
)
class DocumentNode:
    id: strawberry.ID


@strawberry.type(description="A document of any collection.")
class AnyDocument(DocumentNode):
    """What documents look like. They are rows: a page has many, and few of its fields are read."""

    collection: str
    key: JSON = strawberry.field(description="The document's `_id`.")
    version: int | None = strawberry.field(
        description="Null if the document is embedded in another one by a lookup."
    )
    created_at: str | None
    updated_at: str | None
    document: JSON | None = strawberry.field(description="Null if the document was removed.")

    @classmethod
    def is_type_of(cls, value: object, _: object) -> bool:
        return isinstance(value, DocumentRow)


class DocumentRow:
    """A document as the REST API returns it; fields are converted on access."""

    __slots__ = ("collection", "envelope")

    def __init__(self, collection: str, envelope: JsonObject) -> None:
        self.collection = collection
        self.envelope = envelope

    @property
    def id(self) -> str:
        return global_ids.write(self.collection, self.envelope["id"])

    @property
    def key(self) -> JsonValue:
        return self.envelope["id"]

    @property
    def version(self) -> JsonValue:
        return self.envelope.get("version")

    @property
    def created_at(self) -> JsonValue:
        return self.envelope.get("created_at")

    @property
    def updated_at(self) -> JsonValue:
        return self.envelope.get("updated_at")

    @property
    def document(self) -> JsonValue:
        return self.envelope.get("document")


@strawberry.type
class PageInfo:
    has_next_page: bool
    has_previous_page: bool
    start_cursor: str | None
    end_cursor: str | None


def page_info(rows: DocumentsPage) -> PageInfo:
    """Return the cursors of a page, and whether there are pages before and after it."""
    count = len(rows.items)
    return PageInfo(
        has_next_page=rows.has_next,
        has_previous_page=rows.has_previous,
        start_cursor=rows.cursor(0) if count else None,
        end_cursor=rows.cursor(count - 1) if count else None,
    )


@strawberry.type(
    description="Documents that could not be evaluated and are missing from the result."
)
class QueryNotice:
    code: str
    count: int
    detail: str


def query_notice(notice: JsonObject) -> QueryNotice:
    """Convert a notice of the REST API or of a live query."""
    return QueryNotice(
        code=str(notice["code"]), count=int(str(notice["count"])), detail=str(notice["detail"])
    )


def query_notices(rows: DocumentsPage) -> list[QueryNotice]:
    """Return the notices of a page."""
    return [query_notice(notice) for notice in rows.notices]


@strawberry.type
class AnyDocumentEdge:
    cursor: str
    node: AnyDocument


@strawberry.type(description="A page of documents, in the requested order.")
class AnyDocumentConnection:
    collection: strawberry.Private[str]
    filter: strawberry.Private[JsonValue]
    rows: strawberry.Private[DocumentsPage]

    @strawberry.field
    def nodes(self) -> list[AnyDocument]:
        return [row(self.collection, item) for item in self.rows.items]

    @strawberry.field
    def edges(self) -> list[AnyDocumentEdge]:
        return [
            AnyDocumentEdge(cursor=self.rows.cursor(number), node=row(self.collection, item))
            for number, item in enumerate(self.rows.items)
        ]

    @strawberry.field
    def page_info(self) -> PageInfo:
        return page_info(self.rows)

    @strawberry.field
    def notices(self) -> list[QueryNotice]:
        return query_notices(self.rows)

    @strawberry.field(description="Number of matching documents on all pages.")
    async def total_count(self, info: Info) -> int:
        return await count(info.context, self.collection, self.filter)


async def count(context: Context, collection: str, filter: JsonValue) -> int:  # noqa: A002
    """Count matching documents."""
    body = exact_json({"filter": filter})
    answer = await context.post_to_collection(queries.count, "count", collection, body)
    return int(str(answer["count"]))


def row(collection: str, envelope: JsonObject) -> AnyDocument:
    """Convert a document for the fields."""
    return cast("AnyDocument", DocumentRow(collection, envelope))


async def connection(
    context: Context, collection: str, query: JsonObject, first: int | None, after: str | None
) -> AnyDocumentConnection:
    """Run a query, and return a connection."""
    rows = await pages.read(context, collection, query, first, after)
    return AnyDocumentConnection(collection=collection, filter=query.get("filter"), rows=rows)


async def by_key(context: Context, collection: str, key: object) -> AnyDocument | None:
    """Return one document. Concurrent requests are batched."""
    return await _by_reference(context, reference(collection, key))


async def _by_reference(context: Context, document: Reference) -> AnyDocument | None:
    envelope = await context.documents.load(document)
    return None if envelope is None else row(document[0], envelope)


async def write(context: Context, kind: str, collection: str, **members: object) -> JsonValue:
    """Run the message of this name; members that are None are omitted."""
    present = {name: value for name, value in members.items() if value is not None}
    text = exact_json({"type": kind, "id": "graphql", "collection": collection, **present})
    context.forget()
    return await context.call_data_plane(document_messages.CALLS[kind].read(messages.read(text)))


async def written(
    context: Context, kind: str, collection: str, **members: object
) -> AnyDocument | None:
    """Write, and return the current document; None: the caller may not read it."""
    envelope = await write(context, kind, collection, **members)
    return row(collection, envelope) if isinstance(envelope, dict) and "id" in envelope else None


@strawberry.type
class DocumentQueries:
    @strawberry.field(description="Documents of a collection, page by page.")
    async def documents(
        self,
        info: Info,
        collection: Collection,
        filter: JSON | None = None,  # noqa: A002 -- the API's name
        sort: JSON | None = None,
        projection: JSON | None = None,
        lookup: LookedUp = None,
        first: int | None = None,
        after: str | None = None,
    ) -> AnyDocumentConnection:
        query = {"filter": filter, "sort": sort, "projection": projection, "lookup": lookup}
        return await connection(info.context, collection, cast("JsonObject", query), first, after)

    @strawberry.field(description="One document; null if it does not exist or cannot be read.")
    async def document(self, info: Info, collection: Collection, key: Key) -> AnyDocument | None:
        return await by_key(info.context, collection, key)

    @strawberry.field(description="Count matching documents.")
    async def count(
        self,
        info: Info,
        collection: Collection,
        filter: JSON | None = None,  # noqa: A002 -- the API's name
    ) -> int:
        return await count(info.context, collection, cast("JsonValue", filter))

    @strawberry.field(description="Explain how a query is executed.")
    async def explain(
        self,
        info: Info,
        collection: Collection,
        filter: JSON | None = None,  # noqa: A002 -- the API's name
        sort: JSON | None = None,
    ) -> JSON:
        body = exact_json({"filter": filter, "sort": sort})
        plan = await info.context.post_to_collection(queries.explain, "explain", collection, body)
        return cast("JSON", plan)

    @strawberry.field(description="The object with this global id.")
    async def node(self, info: Info, id: strawberry.ID) -> DocumentNode | None:  # noqa: A002
        return await _by_reference(info.context, global_ids.read(id))

    @strawberry.field(description="The objects with these global ids, in the same order.")
    async def nodes(self, info: Info, ids: list[strawberry.ID]) -> list[DocumentNode | None]:
        references = [global_ids.read(text) for text in ids]
        envelopes = await info.context.documents.load_many(references)
        return [
            None if envelope is None else row(collection, envelope)
            for (collection, _), envelope in zip(references, envelopes, strict=True)
        ]


@strawberry.type
class DocumentMutations:
    """What changes many documents. Fields that write one of them are in `writes`."""

    @strawberry.mutation(description="Update matching documents.")
    async def update_documents(
        self,
        info: Info,
        collection: Collection,
        filter: JSON,  # noqa: A002 -- the API's name
        update: JSON,
        array_filters: JSON | None = None,
        limit: int | None = None,
        idempotency_key: str | None = None,
    ) -> JSON:
        body: dict[str, object] = {
            "filter": filter,
            "update": update,
            "array_filters": array_filters,
            "limit": limit,
        }
        return await _by_filter(info.context, "update", collection, body, idempotency_key)

    @strawberry.mutation(description="Delete matching documents.")
    async def delete_documents(
        self,
        info: Info,
        collection: Collection,
        filter: JSON,  # noqa: A002 -- the API's name
        limit: int | None = None,
        idempotency_key: str | None = None,
    ) -> JSON:
        body: dict[str, object] = {"filter": filter, "limit": limit}
        return await _by_filter(info.context, "delete", collection, body, idempotency_key)

    @strawberry.mutation(
        description="Change many documents; all or none unless `ordered` is false."
    )
    async def bulk_write(
        self,
        info: Info,
        collection: Collection,
        operations: list[JSON],
        ordered: bool = True,  # noqa: FBT001, FBT002 -- an argument by name
        idempotency_key: str | None = None,
    ) -> list[JSON]:
        info.context.forget()
        body = exact_json({"operations": operations, "ordered": ordered})
        answer = await info.context.post_to_collection(
            bulk.bulk, "documents:bulk", collection, body, idempotency_key
        )
        return cast("list[JSON]", answer["results"])

    @strawberry.mutation(description="Change documents of several collections atomically.")
    async def transact(
        self, info: Info, operations: list[JSON], idempotency_key: str | None = None
    ) -> list[JSON]:
        info.context.forget()
        call = InternalCall(
            bulk.transact, "POST", "/v1/transactions", {}, exact_json({"operations": operations})
        )
        if idempotency_key is not None:
            call.headers["Idempotency-Key"] = idempotency_key
        answer = cast("JsonObject", await info.context.call_data_plane(call))
        return cast("list[JSON]", answer["results"])


async def _by_filter(
    context: Context,
    what: str,
    collection: str,
    body: dict[str, object],
    idempotency_key: str | None,
) -> JSON:
    context.forget()
    handler = by_filter.update if what == "update" else by_filter.delete
    present = {name: value for name, value in body.items() if value is not None}
    answer = await context.post_to_collection(
        handler, f"documents:{what}", collection, exact_json(present), idempotency_key
    )
    return cast("JSON", answer)
