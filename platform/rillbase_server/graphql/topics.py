"""Fields of topics: queries, publishing, and subscriptions. Queries and mutations correspond to
REST calls, a subscription to that of the live protocol. Places and data are JSON, as in both.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from typing import Annotated, NewType, cast
from urllib.parse import quote

import strawberry
from strawberry.scalars import JSON
from strawberry.types.scalar import ScalarDefinition

from data_plane.internal_call import Handler, InternalCall
from foundation.api.rendering import exact_json
from foundation.errors import FieldProblem, InvalidBody
from foundation.json_types import JsonObject
from rillbase_server.graphql.context import Context, Info
from rillbase_server.graphql.documents import PageInfo
from rillbase_server.graphql.live import LiveMessage, frames, message_members
from storage_engine.topics import facts
from storage_engine.topics.api import calls
from storage_engine.topics.api.calls import MAX_LIMIT, USUAL_LIMIT

Position = NewType("Position", str)
SCALARS: Mapping[object, ScalarDefinition] = {
    Position: strawberry.scalar(
        name="Position",
        description="A position in the order of a topic's publications, as an opaque token.",
        serialize=str,
        parse_value=str,
    )
}

Topic = Annotated[str, strawberry.argument(description="The topic's name.")]
PlaceId = Annotated[
    str | None, strawberry.argument(name="id", description="The place, for topics about ids.")
]
LivePlaceId = Annotated[
    str | None, strawberry.argument(name="topicId", description="The place, for topics about ids.")
]
Geo = Annotated[JSON | None, strawberry.argument(description="The place, for topics about areas.")]
From = Annotated[
    str | None,
    strawberry.argument(name="from", description="A time, or relative to the current time: -10s."),
]
To = Annotated[
    str | None,
    strawberry.argument(name="to", description="A time, or relative to the current time: +10s."),
]


@strawberry.type(description="A publication.")
class TopicPublication:
    publication_id: str
    position: Position
    at: str
    expires_at: str
    id: str | None = strawberry.field(description="The place, for topics about ids.")
    geo: JSON | None = strawberry.field(description="The place, for topics about areas.")
    data: JSON | None


@strawberry.type
class TopicPublicationEdge:
    cursor: str
    node: TopicPublication


@strawberry.type(description="A page of publications, ordered by position.")
class TopicPublicationConnection:
    nodes: list[TopicPublication]
    edges: list[TopicPublicationEdge]
    page_info: PageInfo


@strawberry.type(name="Published", description="Result of publishing.")
class PublishPayload:
    publication_id: str
    position: Position
    matched_subscribers: int
    publications: list[TopicPublication] | None = strawberry.field(
        description="With `selfJoin`: what else is published at this place."
    )


@strawberry.type(description="A message of a subscription to a topic.")
class LivePublications(LiveMessage):
    items: list[TopicPublication] | None = strawberry.field(
        description="With RESULT: existing publications. Part 0 replaces the previous result."
    )
    node: TopicPublication | None = strawberry.field(description="With EVENT: the publication.")


async def _ask(
    context: Context,
    handler: Handler,
    topic: str,
    body: dict[str, object] | None = None,
    query: dict[str, str] | None = None,
) -> JsonObject:
    """Run a call about publications, whose response is an object."""
    members = {name: value for name, value in (body or {}).items() if value is not None}
    call = InternalCall(
        handler,
        "GET" if body is None else "POST",
        f"/v1/topics/{quote(topic, safe='')}/publications",
        {"topic": topic},
        b"" if body is None else exact_json(members),
        query=query or {},
    )
    return cast("JsonObject", await context.call_data_plane(call))


def publication(item: JsonObject) -> TopicPublication:
    """Convert a publication of a response or a frame for the fields."""
    return TopicPublication(
        publication_id=str(item.get("publication_id", item.get("key", item.get("id")))),
        position=cast("Position", item["position"]),
        at=str(item["at"]),
        expires_at=str(item["expires_at"]),
        id=cast("str | None", item.get("id" if "publication_id" in item else "topic_id")),
        geo=cast("JSON | None", item.get("geo")),
        data=cast("JSON | None", item.get("data", item.get("document"))),
    )


def _publications(items: object) -> list[TopicPublication] | None:
    if not isinstance(items, list):
        return None
    return [publication(cast("JsonObject", item)) for item in items]


def payload(frame: JsonObject) -> LivePublications:
    """Convert a frame to a payload."""
    return LivePublications(
        **message_members(frame),
        items=_publications(frame.get("items")),
        node=publication(frame) if frame["type"] == "event" else None,
    )


@strawberry.type
class TopicQueries:
    @strawberry.field(
        description="What is published at a place, ordered by position, page by page."
    )
    async def publications(
        self,
        info: Info,
        topic: Topic,
        place: PlaceId = None,
        geo: Geo = None,
        since: From = None,
        until: To = None,
        first: int | None = None,
        after: str | None = None,
    ) -> TopicPublicationConnection:
        limit = USUAL_LIMIT if first is None else first
        if not 0 < limit <= MAX_LIMIT:
            problem = FieldProblem(
                "/first", "invalid", f"Expected an integer from 1 to {MAX_LIMIT}."
            )
            raise InvalidBody(errors=[problem])
        area = None if geo is None else json.dumps(geo)
        parameters = {"id": place, "geo": area, "from": since, "to": until, "cursor": after}
        query = {name: value for name, value in parameters.items() if value is not None}
        query["limit"] = str(limit)
        answer = await _ask(info.context, calls.list_publications, topic, query=query)
        nodes = _publications(answer["items"]) or []
        topic_facts = await facts.find(info.context.in_tenant().id, topic)
        edges = [
            TopicPublicationEdge(cursor=calls.cursor_behind(topic_facts, node.position), node=node)
            for node in nodes
        ]
        return TopicPublicationConnection(
            nodes=nodes,
            edges=edges,
            page_info=PageInfo(
                has_next_page=answer["next_cursor"] is not None,
                has_previous_page=after is not None,
                start_cursor=edges[0].cursor if edges else None,
                end_cursor=edges[-1].cursor if edges else None,
            ),
        )


@strawberry.type
class TopicMutations:
    @strawberry.mutation(description="Publish to a topic.")
    async def publish(
        self,
        info: Info,
        topic: Topic,
        place: PlaceId = None,
        geo: Geo = None,
        data: JSON | None = None,
        publication_id: str | None = None,
        at: str | None = None,
        expires_at: str | None = None,
        expires_in_s: float | None = None,
        self_join: bool | None = None,  # noqa: FBT001 -- an argument by name
    ) -> PublishPayload:
        body: dict[str, object] = {
            "id": place,
            "geo": geo,
            "data": data,
            "publication_id": publication_id,
            "at": at,
            "expires_at": expires_at,
            "expires_in_s": expires_in_s,
            "self_join": self_join,
        }
        answer = await _ask(info.context, calls.publish_one, topic, body)
        return PublishPayload(
            publication_id=str(answer["publication_id"]),
            position=cast("Position", answer["position"]),
            matched_subscribers=int(str(answer["matched_subscribers"])),
            publications=_publications(answer.get("publications")),
        )


@strawberry.type
class TopicSubscriptions:
    @strawberry.subscription(
        description="Subscribe to the publications at a place, past and future."
    )
    async def publications(
        self,
        info: Info,
        topic: Topic,
        place: LivePlaceId = None,
        geo: Geo = None,
        since: From = None,
        until: To = None,
        subscriber: str | None = None,
        filter: JSON | None = None,  # noqa: A002 -- the API's name
        unseen_only: bool | None = None,  # noqa: FBT001 -- an argument by name
        subscription_id: str | None = None,
        after: Position | None = None,
        resume: str | None = None,
    ) -> AsyncGenerator[LivePublications, None]:
        message: dict[str, object] = {
            "topic": topic,
            "topic_id": place,
            "geo": geo,
            "from": since,
            "to": until,
            "subscriber": subscriber,
            "filter": filter,
            "unseen_only": unseen_only,
            "subscription_id": subscription_id,
            "after": after,
            "resume": resume,
        }
        async for frame in frames(info.context, cast("JsonObject", message)):
            yield payload(frame)
