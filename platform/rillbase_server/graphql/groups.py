"""Fields over groups: one row for all documents with the same values, queried or subscribed to.

A row is not a document. It has neither a version nor a global id: two queries may have rows for the
same values, which a client that caches by id would confuse.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Annotated, cast

import strawberry
from strawberry.scalars import JSON

from foundation.json_types import JsonObject, JsonValue
from rillbase_server.graphql import pages
from rillbase_server.graphql.context import Info
from rillbase_server.graphql.documents import (
    Collection,
    PageInfo,
    QueryNotice,
    page_info,
    query_notices,
)
from rillbase_server.graphql.live import Deliver, LiveRow, frames, items_of, options, row_members
from rillbase_server.graphql.pages import DocumentsPage

By = Annotated[
    list[str],
    strawberry.argument(description="Fields to group by. Documents with equal values form a row."),
]
Measures = Annotated[
    JSON | None,
    strawberry.argument(
        description='Measures by name, such as `{total: {op: "sum", field: "n"}}`.'
    ),
]


@strawberry.type(description="One row for all documents with the same values.")
class DocumentGroup:
    key: JSON = strawberry.field(description="The values that the group's documents share.")
    document: JSON | None = strawberry.field(
        description="The values and the measures of the group. Null: its last document was removed."
    )


@strawberry.type
class DocumentGroupEdge:
    cursor: str
    node: DocumentGroup


@strawberry.type(description="A page of rows, in the requested order or ordered by their values.")
class DocumentGroupConnection:
    rows: strawberry.Private[DocumentsPage]

    @strawberry.field
    def nodes(self) -> list[DocumentGroup]:
        return [_group(item) for item in self.rows.items]

    @strawberry.field
    def edges(self) -> list[DocumentGroupEdge]:
        return [
            DocumentGroupEdge(cursor=self.rows.cursor(number), node=_group(item))
            for number, item in enumerate(self.rows.items)
        ]

    @strawberry.field
    def page_info(self) -> PageInfo:
        return page_info(self.rows)

    @strawberry.field
    def notices(self) -> list[QueryNotice]:
        return query_notices(self.rows)


@strawberry.type(description="A message of a live query with groups.")
class LiveGroups(LiveRow):
    items: list[DocumentGroup] | None = strawberry.field(
        description="With RESULT: rows of the result. Part 0 replaces the previous result."
    )
    node: DocumentGroup | None = strawberry.field(description="With EVENT: the row.")


def _group(envelope: JsonObject) -> DocumentGroup:
    return DocumentGroup(
        key=cast("JSON", envelope["id"]), document=cast("JSON | None", envelope.get("document"))
    )


def payload(frame: JsonObject) -> LiveGroups:
    """Convert a frame to a payload."""
    items = items_of(frame)
    is_event = frame["type"] == "event"
    return LiveGroups(
        **row_members(frame),
        items=None if items is None else [_group(item) for item in items],
        node=_group({**frame, "id": frame["key"]}) if is_event else None,
    )


def _group_request(by: list[str], measures: JSON | None, **members: JSON | None) -> JsonObject:
    """Return the members of the REST call and of `subscribe` for a query."""
    fields = cast("list[JsonValue]", by)
    named = {} if measures is None else cast("JsonValue", measures)
    return {**cast("JsonObject", members), "group": {"by": fields, "measures": named}}


@strawberry.type
class GroupQueries:
    @strawberry.field(description="Documents of a collection in groups, page by page.")
    async def groups(
        self,
        info: Info,
        collection: Collection,
        by: By,
        measures: Measures = None,
        filter: JSON | None = None,  # noqa: A002 -- the API's name
        sort: JSON | None = None,
        first: int | None = None,
        after: str | None = None,
    ) -> DocumentGroupConnection:
        query = _group_request(by, measures, filter=filter, sort=sort)
        rows = await pages.read_groups(info.context, collection, query, first, after)
        return DocumentGroupConnection(rows=rows)


@strawberry.type
class GroupSubscriptions:
    @strawberry.subscription(
        description="Subscribe to groups of documents: the current rows, then each change."
    )
    async def groups(
        self,
        info: Info,
        collection: Collection,
        by: By,
        measures: Measures = None,
        filter: JSON | None = None,  # noqa: A002 -- the API's name
        sort: JSON | None = None,
        offset: int | None = None,
        limit: int | None = None,
        resume: str | None = None,
        deliver: Deliver = Deliver.EVENTS,
        throttle_ms: int = 0,
    ) -> AsyncGenerator[LiveGroups, None]:
        message: JsonObject = {
            **_group_request(by, measures, filter=filter, sort=sort),
            "collection": collection,
            "offset": offset,
            "limit": limit,
            "resume": resume,
            "options": options(deliver, throttle_ms),
        }
        async for frame in frames(info.context, message):
            yield payload(frame)
