"""Topics by GraphQL: queries, publishing and subscriptions."""

from __future__ import annotations

import pytest

from tests.rillbase_server.graphql.graphql_caller import GraphqlCaller
from tests.rillbase_server.graphql.graphql_socket import GraphqlSocket, Message, greeted
from tests.storage_engine.topics.topic_client import Topic, make_topic

PUBLISH = """
mutation ($topic: String!, $id: String, $geo: JSON, $data: JSON, $name: String) {
  publish(topic: $topic, id: $id, geo: $geo, data: $data, publicationId: $name, selfJoin: true) {
    publicationId position matchedSubscribers publications { publicationId }
  }
}
"""
LOOK = """
query ($topic: String!, $id: String, $geo: JSON, $first: Int, $after: String) {
  publications(topic: $topic, id: $id, geo: $geo, from: "-1h", first: $first, after: $after) {
    nodes { publicationId position at expiresAt id geo data }
    edges { cursor node { publicationId } }
    pageInfo { hasNextPage hasPreviousPage endCursor }
  }
}
"""
FOLLOW = """
subscription (
  $topic: String!, $id: String, $since: String, $subscription: String, $filter: JSON,
  $resume: String
) {
  publications(
    topic: $topic, topicId: $id, from: $since, filter: $filter,
    subscriptionId: $subscription, resume: $resume
  ) {
    kind items { publicationId id data } seq match node { publicationId position id data }
    state reason
  }
}
"""


@pytest.fixture
def topic(server: str) -> Topic:
    return make_topic(server)


@pytest.fixture
def graphql(topic: Topic) -> GraphqlCaller:
    return GraphqlCaller(topic.caller)


def key_of(topic: Topic) -> str:
    return topic.account.admin_key


def until_ready(graphql_socket: GraphqlSocket, name: str) -> tuple[list[Message], str]:
    """Return what comes before a subscription is ready, and the token to go on with."""
    before: list[Message] = []
    while True:
        payload = graphql_socket.payload(name)
        if payload["data"]["publications"]["kind"] == "READY":
            return before, payload["extensions"]["resume"]
        before.append(payload["data"]["publications"])


def test_publications_are_found_page_by_page(topic: Topic, graphql: GraphqlCaller) -> None:
    answers = [
        graphql.ask(PUBLISH, topic=topic.name, id="1.2", name=name, data={"n": name})
        for name in ("a", "b", "c")
    ]
    answer = answers[-1]
    assert answer["publish"]["publicationId"] == "c"
    assert {p["publicationId"] for p in answer["publish"]["publications"]} == {"a", "b"}

    page = graphql.ask(LOOK, topic=topic.name, id="1", first=2)["publications"]
    assert [node["publicationId"] for node in page["nodes"]] == ["a", "b"]
    assert page["nodes"][0]["data"] == {"n": "a"}
    assert page["nodes"][0]["id"] == "1.2"
    assert page["pageInfo"]["hasNextPage"]
    assert not page["pageInfo"]["hasPreviousPage"]

    for cursor in (page["pageInfo"]["endCursor"], page["edges"][1]["cursor"]):
        rest = graphql.ask(LOOK, topic=topic.name, id="1", first=2, after=cursor)["publications"]
        assert [node["publicationId"] for node in rest["nodes"]] == ["c"]
        assert not rest["pageInfo"]["hasNextPage"]


def test_areas_are_places_too(server: str) -> None:
    city = make_topic(server, name="traffic", kind="geo")
    graphql = GraphqlCaller(city.caller)
    here = {"center": [16.37, 48.21], "radius_m": 120}
    graphql.ask(PUBLISH, topic=city.name, geo=here, name="jam")
    data = graphql.ask(LOOK, topic=city.name, geo={"box": [16.3, 48.2, 16.4, 48.3]})
    (node,) = data["publications"]["nodes"]
    assert (node["publicationId"], node["geo"], node["id"]) == ("jam", here, None)


def test_rejections_are_those_of_rest(topic: Topic, graphql: GraphqlCaller) -> None:
    assert graphql.refused(LOOK, topic="nowhere", id="1")["extensions"]["code"] == "not_found"
    wrong = graphql.refused(PUBLISH, topic=topic.name, geo={"box": [0, 0, 1, 1]})
    assert wrong["extensions"]["code"] == "invalid_body"
    none = graphql.refused(LOOK, topic=topic.name, id="1", first=0)
    assert none["extensions"]["code"] == "invalid_body"


def test_a_subscription_delivers_past_and_future_publications(server: str, topic: Topic) -> None:
    topic.publish(id="1.2", publication_id="before", data={"n": 7})
    with greeted(server, token=key_of(topic)) as graphql_socket:
        wanted = {"id": "1", "since": "-1h", "filter": {"n": {"$gt": 5}}}
        graphql_socket.subscribe("s", FOLLOW, topic=topic.name, **wanted)
        (result,), _ = until_ready(graphql_socket, "s")
        assert result["kind"] == "RESULT"
        assert result["items"] == [{"publicationId": "before", "id": "1.2", "data": {"n": 7}}]
        topic.publish(id="1", publication_id="unwanted", data={"n": 1})
        publication = topic.publish(id="1", publication_id="wanted", data={"n": 9})
        event = graphql_socket.event("s", "publications")
        assert (event["kind"], event["match"], event["seq"]) == ("EVENT", "ADD", 1)
        assert event["node"]["publicationId"] == "wanted"
        assert event["node"]["position"] == publication["position"]


def test_a_resumed_subscription_gets_missed_publications_once(server: str, topic: Topic) -> None:
    with greeted(server, token=key_of(topic)) as graphql_socket:
        graphql_socket.subscribe("s", FOLLOW, topic=topic.name, id="1")
        _, token = until_ready(graphql_socket, "s")
        topic.publish(id="1", publication_id="seen")
        payload = graphql_socket.payload("s")
        assert payload["data"]["publications"]["node"]["publicationId"] == "seen"
        token = payload["extensions"]["resume"]
    topic.publish(id="1", publication_id="missed")
    with greeted(server, token=key_of(topic)) as graphql_socket:
        graphql_socket.subscribe("s", FOLLOW, topic=topic.name, id="1", resume=token)
        assert graphql_socket.event("s", "publications")["node"]["publicationId"] == "missed"


def test_a_subscription_made_by_a_call_can_be_followed(server: str, topic: Topic) -> None:
    subscription = topic.subscribe(id="1")
    topic.publish(id="1", publication_id="a")
    with greeted(server, token=key_of(topic)) as graphql_socket:
        graphql_socket.subscribe(
            "s", FOLLOW, topic=topic.name, subscription=subscription["subscription_id"]
        )
        assert graphql_socket.event("s", "publications")["node"]["publicationId"] == "a"
