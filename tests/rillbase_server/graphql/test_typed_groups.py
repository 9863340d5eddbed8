"""Groups of documents that have a type: by its fields, measured and shown in their types."""

from __future__ import annotations

import pytest

from tests.documents.collection import CollectionClient, make_collection
from tests.rillbase_server.graphql.graphql_caller import GraphqlCaller
from tests.rillbase_server.graphql.graphql_socket import greeted
from tests.rillbase_server.graphql.test_socket import key_of

SCHEMA = {
    "type": "object",
    "properties": {
        "kind": {"enum": ["a", "b", "c"]},
        "count": {"bsonType": ["int", "long"]},
        "share": {"type": "number"},
        "price": {"bsonType": "decimal"},
        "due": {"bsonType": "date"},
        "place": {"type": "object", "properties": {"city": {"type": "string"}}},
        "done": {"type": "boolean"},
    },
}
WATCH = """
subscription ($resume: String) {
  ordersGroups(by: [kind], sort: [{by: sum_count, direction: DESC}], resume: $resume) {
    kind items { values { kind } sum { count } } seq match index oldIndex
    node { key values { kind } count sum { count } } state
  }
}
"""


@pytest.fixture
def orders(server: str) -> CollectionClient:
    collection = make_collection(server, name="orders", schema=SCHEMA)
    collection.insert_many(
        [
            {
                "_id": n,
                "kind": "abc"[n % 3],
                "count": n,
                "share": n / 2,
                "price": {"$numberDecimal": f"{n}.10"},
                "due": {"$date": f"2026-01-0{n + 1}T00:00:00Z"},
                "place": {"city": "Ulm" if n < 4 else "Bonn"},
            }
            for n in range(6)
        ]
    )
    return collection


@pytest.fixture
def typed(orders: CollectionClient) -> GraphqlCaller:
    return GraphqlCaller(orders.caller)


def test_selected_measures_are_computed_in_their_types(typed: GraphqlCaller) -> None:
    data = typed.ask(
        """{ ordersGroups(by: [place_city], filter: {count: {gt: 0}}, sort: [{by: place_city}]) {
          nodes {
            key values { place { city } } count
            sum { count share price } avg { count price } min { due } max { price count }
          }
          pageInfo { hasNextPage }
        } }"""
    )["ordersGroups"]
    assert data["nodes"][1] == {
        "key": {"place": {"city": "Ulm"}},
        "values": {"place": {"city": "Ulm"}},
        "count": 3,
        "sum": {"count": 6, "share": 3.0, "price": "6.30"},
        "avg": {"count": 2.0, "price": "2.10"},
        "min": {"due": "2026-01-02T00:00:00Z"},
        "max": {"price": "3.10", "count": 3},
    }
    assert data["nodes"][0]["count"] == 2
    assert data["pageInfo"] == {"hasNextPage": False}


def test_rows_are_sorted_by_unselected_measures_page_by_page(
    typed: GraphqlCaller,
) -> None:
    text = """query ($after: String) {
      ordersGroups(by: [kind], sort: [{by: max_count, direction: DESC}], first: 2, after: $after) {
        edges { cursor node { values { kind } } } pageInfo { hasNextPage endCursor }
      }
    }"""
    first = typed.ask(text)["ordersGroups"]
    assert [edge["node"]["values"]["kind"] for edge in first["edges"]] == ["c", "b"]
    rest = typed.ask(text, after=first["pageInfo"]["endCursor"])["ordersGroups"]
    assert [edge["node"]["values"]["kind"] for edge in rest["edges"]] == ["a"]
    assert rest["pageInfo"]["hasNextPage"] is False


def test_without_fields_to_group_by_all_documents_are_one_row(typed: GraphqlCaller) -> None:
    data = typed.ask("{ ordersGroups { nodes { count sum { count } } } }")["ordersGroups"]
    assert data["nodes"] == [{"count": 6, "sum": {"count": 15}}]


def test_a_field_named_like_a_measure_can_be_grouped_and_sorted(typed: GraphqlCaller) -> None:
    text = """{ ordersGroups(by: [count], sort: [{by: count_}, {by: count, direction: DESC}]) {
      nodes { values { count } count } } }"""
    data = typed.ask(text)["ordersGroups"]["nodes"]
    assert data == [{"values": {"count": n}, "count": 1} for n in reversed(range(6))]


def test_empty_sums_and_64_bit_numbers_are_returned(
    typed: GraphqlCaller, orders: CollectionClient
) -> None:
    text = """{ ordersGroups(by: [done], filter: {done: {exists: true}}) {
      nodes { sum { count price } avg { count } min { count } } } }"""
    orders.insert({"_id": 10, "done": True})
    (row,) = typed.ask(text)["ordersGroups"]["nodes"]
    nothing = {"sum": {"count": 0, "price": "0"}, "avg": {"count": None}, "min": {"count": None}}
    assert row == nothing
    orders.insert({"_id": 11, "done": True, "count": {"$numberLong": str(2**60)}})
    (row,) = typed.ask(text)["ordersGroups"]["nodes"]
    assert (row["sum"]["count"], row["min"]["count"]) == (2**60, 2**60)
    shown = typed.ask("{ ordersByKey(key: 11) { document { count } } }")
    assert shown["ordersByKey"]["document"]["count"] == 2**60


def test_the_error_names_values_that_cannot_be_grouped(typed: GraphqlCaller) -> None:
    error = typed.refused("{ ordersGroups(by: [kind]) { nodes { values { place { city } } } } }")
    assert error["extensions"]["code"] == "invalid_group"
    assert error["extensions"]["errors"][0]["pointer"] == "/by"
    assert "`city`" in error["extensions"]["errors"][0]["detail"]


def test_the_weight_of_groups_is_their_maximum_size(typed: GraphqlCaller) -> None:
    fields = " ".join(f"v{n}: max {{ price count share due }}" for n in range(29))
    text = f"{{ ordersGroups(first: 1000) {{ nodes {{ {fields} }} }} ordersGroups2: documents"
    text += f'(collection: "orders", first: 1000) {{ nodes {{ {"key " * 60} }} }} }}'
    assert typed.refused(text)["extensions"]["code"] == "query_too_expensive"


@pytest.mark.usefixtures("live")
def test_each_changed_row_is_delivered_also_after_a_disconnect(
    server: str, orders: CollectionClient
) -> None:
    with greeted(server, token=key_of(orders)) as graphql_socket:
        graphql_socket.subscribe("s", WATCH)
        (result,) = graphql_socket.until_ready("s", "ordersGroups")
        assert [item["sum"]["count"] for item in result["items"]] == [7, 5, 3]
        orders.insert({"_id": 20, "kind": "a", "count": 100})
        payload = graphql_socket.payload("s")
        token, answer = payload["extensions"]["resume"], payload["data"]["ordersGroups"]
        assert (answer["match"], answer["index"], answer["oldIndex"]) == ("CHANGE_INDEX", 0, 2)
        sums = {"values": {"kind": "a"}, "count": 3, "sum": {"count": 103}}
        assert answer["node"] == {"key": {"kind": "a"}, **sums}
    operations = [{"delete": {"id": key}} for key in (1, 4)]
    orders.caller.post(f"{orders.path}/documents:bulk", {"operations": operations})
    with greeted(server, token=key_of(orders)) as graphql_socket:
        graphql_socket.subscribe("s", WATCH, resume=token)
        answer = graphql_socket.event("s", "ordersGroups")
        assert answer["match"] == "REMOVE"
        gone = {"key": {"kind": "b"}, "values": None, "count": None, "sum": None}
        assert answer["node"] == gone
