"""Reading and writing documents of any collection through fields."""

from __future__ import annotations

import pytest

from tests.documents.collection import CollectionClient, make_collection
from tests.rillbase_server.graphql.graphql_caller import GraphqlCaller

PAGE = """
query ($c: String!, $filter: JSON, $sort: JSON, $first: Int, $after: String) {
  documents(collection: $c, filter: $filter, sort: $sort, first: $first, after: $after) {
    totalCount
    edges { cursor node { key document } }
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
  }
}
"""


def _keys(page: dict[str, object]) -> list[object]:
    return [edge["node"]["key"] for edge in page["documents"]["edges"]]  # type: ignore[index]


def test_documents_have_the_requested_order_and_number(
    graphql: GraphqlCaller, things: CollectionClient
) -> None:
    things.insert_many([{"_id": n, "n": n % 3} for n in range(9)])
    data = graphql.ask(
        PAGE, c=things.name, filter={"n": {"$gt": 0}}, sort=[["n", -1], ["_id", 1]], first=4
    )
    assert _keys(data) == [2, 5, 8, 1]
    assert data["documents"]["totalCount"] == 6
    assert data["documents"]["edges"][0]["node"]["document"] == {"_id": 2, "n": 2}


def test_cursors_return_every_document_once(
    graphql: GraphqlCaller, things: CollectionClient
) -> None:
    things.insert_many([{"_id": n} for n in range(25)])
    seen: list[object] = []
    after = None
    while True:
        data = graphql.ask(PAGE, c=things.name, first=10, after=after)
        seen += _keys(data)
        page = data["documents"]["pageInfo"]
        assert page["hasPreviousPage"] == (after is not None)
        if not page["hasNextPage"]:
            break
        after = page["endCursor"]
    assert seen == list(range(25))


def test_every_edge_has_a_cursor(graphql: GraphqlCaller, things: CollectionClient) -> None:
    things.insert_many([{"_id": n} for n in range(12)])
    first = graphql.ask(PAGE, c=things.name, first=5)["documents"]["edges"]
    for number, edge in enumerate(first):
        behind = graphql.ask(PAGE, c=things.name, first=3, after=edge["cursor"])
        assert _keys(behind) == [number + 1, number + 2, number + 3]
    last = graphql.ask(PAGE, c=things.name)["documents"]["pageInfo"]["endCursor"]
    things.insert({"_id": 12})
    assert _keys(graphql.ask(PAGE, c=things.name, after=last)) == [12]


def test_documents_by_key_in_one_operation_are_read_together(
    graphql: GraphqlCaller, things: CollectionClient
) -> None:
    things.insert_many([{"_id": n} for n in range(3)])
    data = graphql.ask(
        """query ($c: String!) {
             a: document(collection: $c, key: 0) { document }
             b: document(collection: $c, key: 2) { document id }
             none: document(collection: $c, key: 9) { document }
           }""",
        c=things.name,
    )
    assert data["a"] == {"document": {"_id": 0}}
    assert data["none"] is None
    again = graphql.ask(
        "query ($id: ID!) { node(id: $id) { __typename ... on AnyDocument { document } } }",
        id=data["b"]["id"],
    )
    assert again["node"] == {"__typename": "AnyDocument", "document": {"_id": 2}}


def test_a_document_is_written_and_read_through_its_whole_life(
    graphql: GraphqlCaller, things: CollectionClient
) -> None:
    created = graphql.ask(
        """mutation ($c: String!, $d: JSON!) {
             insertDocument(collection: $c, document: $d) { key version createdAt document }
           }""",
        c=things.name,
        d={"_id": "x", "n": 1},
    )["insertDocument"]
    assert (created["key"], created["version"], created["document"]["n"]) == ("x", 1, 1)
    changed = graphql.ask(
        """mutation ($c: String!, $u: JSON!, $p: JSON!) {
             updateDocument(collection: $c, key: "x", update: $u, ifVersion: 1) { version document }
             mergeDocument(collection: $c, key: "x", patch: $p) { version document }
             replaceDocument(collection: $c, key: "x", document: {a: 1}) { version document }
             deleteDocument(collection: $c, key: "x")
           }""",
        c=things.name,
        u={"$inc": {"n": 1}},
        p={"m": True},
    )
    assert changed["updateDocument"]["document"] == {"_id": "x", "n": 2}
    assert changed["mergeDocument"]["document"] == {"_id": "x", "n": 2, "m": True}
    assert changed["replaceDocument"] == {"version": 4, "document": {"_id": "x", "a": 1}}
    assert changed["deleteDocument"] == "x"
    assert things.query() == []


def test_a_write_repeated_with_its_idempotency_key_takes_effect_once(
    graphql: GraphqlCaller, things: CollectionClient
) -> None:
    text = """mutation ($c: String!) {
      insertDocument(collection: $c, document: {n: 1}, idempotencyKey: "once") { key }
    }"""
    assert graphql.ask(text, c=things.name) == graphql.ask(text, c=things.name)
    assert len(things.query()) == 1


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("updateDocuments(filter: {}, update: $change,", {"$inc": {"n": 1}}),
        ("bulkWrite(operations: [$change],", {"insert": {"n": 2}}),
        ("deleteDocuments(filter: $change, limit: 1,", {}),
    ],
)
def test_a_repeated_change_of_many_documents_changes_nothing_more(
    graphql: GraphqlCaller, things: CollectionClient, field: str, change: object
) -> None:
    things.insert_many([{"_id": "a", "n": 0}, {"_id": "b", "n": 0}])
    before = things.query()
    text = f"""mutation ($c: String!, $change: JSON!) {{
      {field} collection: $c, idempotencyKey: "k")
    }}"""
    first = graphql.ask(text, c=things.name, change=change)
    after = things.query()
    assert graphql.ask(text, c=things.name, change=change) == first
    assert things.query() == after != before


def test_many_documents_are_changed_by_filter_in_bulk_and_over_collections(
    graphql: GraphqlCaller, things: CollectionClient
) -> None:
    things.insert_many([{"_id": n, "n": n} for n in range(5)])
    graphql.ask(
        """mutation ($c: String!, $f: JSON!, $u: JSON!, $ops: [JSON!]!, $tx: [JSON!]!) {
             updateDocuments(collection: $c, filter: $f, update: $u)
             deleteDocuments(collection: $c, filter: {n: 0})
             bulkWrite(collection: $c, operations: $ops)
             transact(operations: $tx)
           }""",
        c=things.name,
        f={"n": {"$gte": 3}},
        u={"$set": {"big": True}},
        ops=[{"insert": {"_id": 10}}, {"delete": {"id": 1}}],
        tx=[{"collection": things.name, "delete": {"id": 10}}],
    )
    assert things.query(sort=[["_id", 1]]) == [
        {"_id": 2, "n": 2},
        {"_id": 3, "n": 3, "big": True},
        {"_id": 4, "n": 4, "big": True},
    ]


def test_the_error_of_a_field_has_the_code_and_pointer_of_the_rest_api(
    graphql: GraphqlCaller, things: CollectionClient
) -> None:
    error = graphql.refused(PAGE, c=things.name, filter={"a": {"$nope": 1}})
    assert error["extensions"]["code"] == "unsupported_operator"
    assert error["extensions"]["errors"][0]["pointer"].startswith("/filter/a")
    assert error["path"] == ["documents"]
    assert error["extensions"]["request_id"]
    things.insert({"_id": 1})
    taken = graphql.refused(
        "mutation ($c: String!) { insertDocument(collection: $c, document: {_id: 1}) { key } }",
        c=things.name,
    )
    assert taken["extensions"]["code"] == "duplicate_id"


def test_a_failed_field_does_not_affect_the_others(
    graphql: GraphqlCaller, things: CollectionClient
) -> None:
    body = graphql.send(
        """query ($c: String!) {
             count(collection: $c)
             explain(collection: "there-is-none")
             document(collection: "there-is-none", key: 1) { key }
           }""",
        variables={"c": things.name},
    ).json()
    assert {error["extensions"]["code"] for error in body["errors"]} == {"not_found"}


def test_another_tenants_documents_are_inaccessible(graphql: GraphqlCaller, server: str) -> None:
    strange = make_collection(server)
    strange.insert({"_id": 1, "secret": True})
    error = graphql.refused(PAGE, c=strange.name)
    assert error["extensions"]["code"] == "not_found"
    there = GraphqlCaller(strange.caller).ask(
        "query ($c: String!) { document(collection: $c, key: 1) { id } }", c=strange.name
    )
    stolen = graphql.refused(
        "query ($id: ID!) { node(id: $id) { id } }", id=there["document"]["id"]
    )
    assert stolen["extensions"]["code"] == "not_found"


def test_end_users_see_only_what_the_access_rules_allow(
    things: CollectionClient, graphql: GraphqlCaller
) -> None:
    things.insert({"_id": 1})
    anonymous = GraphqlCaller(things.anonymous())
    error = anonymous.refused(PAGE, c=things.name)
    assert error["extensions"]["status"] == 403
    assert anonymous.refused("{ __schema { queryType { name } } }")["extensions"]["code"] == (
        "forbidden"
    )


def test_a_variable_switches_fields_off_and_on(
    graphql: GraphqlCaller, things: CollectionClient
) -> None:
    things.insert({"_id": 1})
    text = """
    query ($c: String!, $more: Boolean!) {
      documents(collection: $c) { nodes { key version @include(if: $more) } }
    }
    """
    for more, node in ((True, {"key": 1, "version": 1}), (False, {"key": 1})) * 2:
        data = graphql.ask(text, c=things.name, more=more)
        assert data["documents"]["nodes"] == [node]


def test_numbers_keep_all_their_digits(graphql: GraphqlCaller, things: CollectionClient) -> None:
    things.insert({"_id": 1, "n": 2**53 - 1, "tiny": 5e-324})
    data = graphql.ask(
        "query ($c: String!) { document(collection: $c, key: 1) { document } }", c=things.name
    )
    assert data["document"]["document"] == {"_id": 1, "n": 2**53 - 1, "tiny": 5e-324}
