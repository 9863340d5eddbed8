"""Pages and live queries say which documents could not be evaluated."""

from __future__ import annotations

from typing import Any

import pytest

from tests.documents.api.test_unevaluated import COSTLY, TOO_LARGE
from tests.documents.collection import CollectionClient, make_collection
from tests.rillbase_server.graphql.graphql_caller import GraphqlCaller
from tests.rillbase_server.graphql.graphql_socket import GraphqlSocket, greeted
from tests.rillbase_server.graphql.test_socket import key_of

NOTICES = "notices { code count detail }"
DOCUMENTS = f"documents(collection: $c, filter: $f) {{ nodes {{ key }} {NOTICES} }}"
GROUPS = f"""groups(collection: $c, filter: $f, by: [], measures: {{n: {{op: "count"}}}}) {{
  nodes {{ document }} {NOTICES}
}}"""
TYPED = f"sizes(filter: {{match: $f}}) {{ nodes {{ key }} {NOTICES} }}"
TYPED_GROUPS = f"sizesGroups(by: [], filter: {{match: $f}}) {{ nodes {{ count }} {NOTICES} }}"
WATCH = """subscription ($c: String!, $f: JSON) {
  documents(collection: $c, filter: $f) { kind node { key } notice { code count detail } }
}"""


@pytest.fixture
def sizes(server: str) -> CollectionClient:
    schema = {"type": "object", "properties": {"size": {"bsonType": "int"}}}
    collection = make_collection(server, name="sizes", schema=schema)
    collection.insert_many([{"_id": "a", "size": 3}, {"_id": "huge", "size": TOO_LARGE}])
    return collection


@pytest.mark.parametrize(
    ("query", "nodes"),
    [
        (f"query ($c: String!, $f: JSON) {{ page: {DOCUMENTS} }}", [{"key": "a"}]),
        (f"query ($c: String!, $f: JSON) {{ page: {GROUPS} }}", [{"document": {"n": 1}}]),
        (f"query ($f: JSON) {{ page: {TYPED} }}", [{"key": "a"}]),
        (f"query ($f: JSON) {{ page: {TYPED_GROUPS} }}", [{"count": 1}]),
    ],
    ids=["documents", "groups", "typed", "typed groups"],
)
def test_a_page_counts_omitted_documents(
    sizes: CollectionClient, query: str, nodes: list[object]
) -> None:
    page = GraphqlCaller(sizes.caller).ask(query, c=sizes.name, f=COSTLY)["page"]
    assert page["nodes"] == nodes
    (notice,) = page["notices"]
    assert (notice["code"], notice["count"]) == ("documents_not_evaluated", 1)
    assert notice["detail"]
    assert (
        GraphqlCaller(sizes.caller).ask(query, c=sizes.name, f={"_id": "a"})["page"]["notices"]
        == []
    )


def _next(graphql_socket: GraphqlSocket, kind: str) -> dict[str, Any]:
    while True:
        payload: dict[str, Any] = graphql_socket.payload("s")["data"]["documents"]
        if payload["kind"] == kind:
            return payload


@pytest.mark.usefixtures("live")
def test_a_subscription_counts_omitted_documents_and_continues(
    server: str, sizes: CollectionClient
) -> None:
    with greeted(server, token=key_of(sizes)) as graphql_socket:
        graphql_socket.subscribe("s", WATCH, c=sizes.name, f=COSTLY)
        notice = _next(graphql_socket, "NOTICE")["notice"]
        assert (notice["code"], notice["count"]) == ("documents_not_evaluated", 1)
        assert notice["detail"]
        sizes.insert({"_id": "b", "size": 1})
        assert _next(graphql_socket, "EVENT")["node"]["key"] == "b"
