"""Groups of documents, as queries and as subscriptions."""

from __future__ import annotations

import pytest

from tests.documents.collection import CollectionClient
from tests.rillbase_server.graphql.graphql_caller import GraphqlCaller
from tests.rillbase_server.graphql.graphql_socket import greeted
from tests.rillbase_server.graphql.test_socket import key_of

MEASURES = {"sum": {"op": "sum", "field": "n"}}
PAGE = """
query ($c: String!, $m: JSON, $filter: JSON, $sort: JSON, $first: Int, $after: String) {
  groups(
    collection: $c, by: ["kind"], measures: $m, filter: $filter, sort: $sort, first: $first
    after: $after
  ) {
    nodes { key document }
    edges { cursor node { key } }
    pageInfo { hasNextPage hasPreviousPage endCursor }
  }
}
"""
WATCH = """
subscription ($c: String!, $m: JSON, $sort: JSON, $limit: Int, $resume: String, $how: Deliver!) {
  groups(
    collection: $c, by: ["kind"], measures: $m, sort: $sort, limit: $limit, resume: $resume
    deliver: $how
  ) {
    kind items { key document } seq match node { key document } index oldIndex
    transaction { index count } state reason
  }
}
"""


@pytest.fixture
def kinds(things: CollectionClient) -> CollectionClient:
    """Six documents, the first three kinds of two each."""
    things.insert_many([{"_id": n, "kind": "abc"[n % 3], "n": n} for n in range(6)])
    return things


def test_documents_with_the_same_values_are_one_row(
    graphql: GraphqlCaller, kinds: CollectionClient
) -> None:
    data = graphql.ask(PAGE, c=kinds.name, m=MEASURES, filter={"n": {"$gt": 0}})["groups"]
    assert data["nodes"] == [
        {"key": {"kind": kind}, "document": {"kind": kind, "sum": total}}
        for kind, total in (("a", 3), ("b", 5), ("c", 7))
    ]
    assert data["pageInfo"]["hasNextPage"] is False


def test_cursors_return_every_row_once(graphql: GraphqlCaller, kinds: CollectionClient) -> None:
    sort, seen, after = [["sum", -1]], [], None
    while True:
        data = graphql.ask(PAGE, c=kinds.name, m=MEASURES, sort=sort, first=2, after=after)
        seen += [edge["node"]["key"]["kind"] for edge in data["groups"]["edges"]]
        page = data["groups"]["pageInfo"]
        assert page["hasPreviousPage"] == (after is not None)
        if not page["hasNextPage"]:
            break
        after = page["endCursor"]
    assert seen == ["c", "b", "a"]


def test_errors_of_groups_have_the_codes_of_the_rest_api(
    graphql: GraphqlCaller, kinds: CollectionClient
) -> None:
    wrong = graphql.refused(PAGE, c=kinds.name, m={"sum": {"op": "guess"}})
    assert wrong["extensions"]["code"] == "invalid_group"
    page = "documents(collection: $c, first: 2) { pageInfo { endCursor } }"
    data = graphql.ask(f"query ($c: String!) {{ {page} }}", c=kinds.name)["documents"]
    cursor = data["pageInfo"]["endCursor"]
    strange = graphql.refused(PAGE, c=kinds.name, m=MEASURES, after=cursor)
    assert strange["extensions"]["errors"][0]["pointer"] == "/after"


@pytest.mark.usefixtures("live")
def test_rows_are_delivered_as_documents_change_and_after_a_disconnect(
    server: str, kinds: CollectionClient
) -> None:
    variables = {"c": kinds.name, "m": MEASURES, "sort": [["sum", -1]], "how": "EVENTS"}
    with greeted(server, token=key_of(kinds)) as graphql_socket:
        graphql_socket.subscribe("s", WATCH, **variables)
        (result,) = graphql_socket.until_ready("s", "groups")
        assert [item["key"]["kind"] for item in result["items"]] == ["c", "b", "a"]
        kinds.insert({"_id": 10, "kind": "a", "n": 100})
        payload = graphql_socket.payload("s")
        token, answer = payload["extensions"]["resume"], payload["data"]["groups"]
        assert (answer["kind"], answer["match"], answer["seq"]) == ("EVENT", "CHANGE_INDEX", 1)
        assert (answer["index"], answer["oldIndex"]) == (0, 2)
        assert answer["node"] == {"key": {"kind": "a"}, "document": {"kind": "a", "sum": 103}}
    kinds.caller.delete(f"{kinds.path}/documents/~1")
    kinds.caller.delete(f"{kinds.path}/documents/~4")
    with greeted(server, token=key_of(kinds)) as graphql_socket:
        graphql_socket.subscribe("s", WATCH, **variables, resume=token)
        matches = []
        while "REMOVE" not in matches:
            answer = graphql_socket.event("s", "groups")
            assert answer["kind"] == "EVENT"
            matches.append(answer["match"])
        assert answer["node"] == {"key": {"kind": "b"}, "document": None}


@pytest.mark.usefixtures("live")
def test_the_whole_answer_can_be_requested_each_time(server: str, kinds: CollectionClient) -> None:
    with greeted(server, token=key_of(kinds)) as graphql_socket:
        graphql_socket.subscribe("s", WATCH, c=kinds.name, m=None, limit=2, how="RESULT")
        (result,) = graphql_socket.until_ready("s", "groups")
        assert [item["document"] for item in result["items"]] == [{"kind": "a"}, {"kind": "b"}]
        kinds.insert({"_id": 10, "kind": "Z"})
        answer = graphql_socket.event("s", "groups")
        assert answer["kind"] == "RESULT"
        assert [item["key"]["kind"] for item in answer["items"]] == ["Z", "a"]
