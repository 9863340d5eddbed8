"""Operations over HTTP, and their limits."""

from __future__ import annotations

import json
from hashlib import sha256
from urllib.parse import urlencode

import pytest

from tests.caller import anonymous, signed_in
from tests.documents.collection import CollectionClient
from tests.rillbase_server.graphql.graphql_caller import GraphqlCaller

NEWER = "application/graphql-response+json"


def test_queries_may_be_sent_by_get_and_mutations_not(
    graphql: GraphqlCaller, things: CollectionClient
) -> None:
    text = "query ($c: String!) { count(collection: $c) }"
    sent = urlencode({"query": text, "variables": json.dumps({"c": things.name})})
    assert graphql.caller.get(f"/graphql?{sent}").json() == {"data": {"count": 0}}
    changing = (
        f'mutation {{ insertDocument(collection: "{things.name}", document: {{}}) {{ id }} }}'
    )
    refusal = graphql.caller.get("/graphql?" + urlencode({"query": changing}))
    assert refusal.status_code == 405
    assert things.query() == []


def test_calls_without_credentials_are_rejected(server: str) -> None:
    answer = anonymous(server).post("/graphql", {"query": "{ __typename }"})
    assert answer.status_code == 401
    assert answer.json()["errors"][0]["extensions"]["code"] == "unauthenticated"


def test_a_member_without_a_tenant_is_asked_to_name_one(
    server: str, things: CollectionClient
) -> None:
    graphql = GraphqlCaller(signed_in(server, things.account.owner))
    error = graphql.refused(f'{{ count(collection: "{things.name}") }}')
    assert error["extensions"]["code"] == "invalid_parameter"
    graphql.caller.headers["Rillbase-Tenant"] = things.account.slug
    assert graphql.ask(f'{{ count(collection: "{things.name}") }}') == {"count": 0}


def test_clients_of_the_newer_media_type_get_an_error_status(
    graphql: GraphqlCaller,
) -> None:
    older = graphql.caller.post("/graphql", {"query": "{ nope }"})
    newer = graphql.caller.post("/graphql", {"query": "{ nope }"}, Accept=NEWER)
    assert (older.status_code, newer.status_code) == (200, 400)
    assert newer.headers["Content-Type"] == NEWER
    (error,) = older.json()["errors"]
    assert error["extensions"]["code"] == "invalid_operation"
    assert error["locations"] == [{"line": 1, "column": 3}]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ([{"query": "{ __typename }"}], "invalid_body"),
        ({"query": "{ __typename }", "batch": 1}, "invalid_body"),
        ({"query": 1}, "invalid_body"),
        ({"query": "{ __typename }", "variables": []}, "invalid_body"),
        ({}, "invalid_body"),
        ({"query": "{ __typename"}, "invalid_operation"),
        ({"query": "query A { __typename } query B { __typename }"}, "invalid_operation"),
        ({"query": 'subscription { documents(collection: "x") { seq } }'}, "invalid_operation"),
        ({"query": "{" * 5000}, "invalid_operation"),
    ],
)
def test_invalid_operations_are_rejected(graphql: GraphqlCaller, body: object, code: str) -> None:
    content = graphql.caller.post("/graphql", body).json()
    assert content["errors"][0]["extensions"]["code"] == code


def test_the_depth_of_an_operation_is_limited(graphql: GraphqlCaller) -> None:
    deep = "{ __schema { types " + "{ ofType " * 0 + "{ fields { type " + "{ ofType " * 14
    text = deep + "{ name }" + " }" * 14 + " } } } }"
    assert "deep" in graphql.refused(text)["message"]


def test_the_aliases_of_an_operation_are_limited(graphql: GraphqlCaller) -> None:
    many = " ".join(f"a{n}: __typename" for n in range(40))
    assert "aliases" in graphql.refused(f"{{ {many} }}")["message"]


def test_multiplying_fragments_are_rejected_cheaply(graphql: GraphqlCaller) -> None:
    levels = "".join(
        f"fragment F{n} on Query {{ a{n}: __typename ...F{n + 1} ...F{n + 1} }} " for n in range(35)
    )
    text = "{ ...F0 } " + levels + "fragment F35 on Query { __typename }"
    assert graphql.refused(text)["extensions"]["code"] == "invalid_operation"


def test_lists_through_lists_are_weighed_before_anything_is_read(
    graphql: GraphqlCaller, things: CollectionClient
) -> None:
    fields = "key version createdAt updatedAt collection document id"
    page = f'documents(collection: "{things.name}", first: 1000) {{ nodes {{ {fields} }} }}'
    text = "{" + " ".join(f"p{n}: {page}" for n in range(29)) + "}"
    error = graphql.refused(text)
    assert error["extensions"]["code"] == "query_too_expensive"
    by_variable = graphql.send(
        f'query ($n: Int) {{ documents(collection: "{things.name}", first: $n) '
        "{ nodes { key } } }",
        variables={"n": 100_000_000},
    ).json()
    assert by_variable["errors"][0]["extensions"]["code"] == "query_too_expensive"


def test_a_persisted_query_is_found_by_its_hash(
    graphql: GraphqlCaller, things: CollectionClient, server: str
) -> None:
    text = f'{{ count(collection: "{things.name}") }}'
    persisted = {"persistedQuery": {"version": 1, "sha256Hash": sha256(text.encode()).hexdigest()}}
    unknown = graphql.send(None, extensions=persisted).json()["errors"][0]
    assert unknown["message"] == "PersistedQueryNotFound"
    assert unknown["extensions"]["code"] == "persisted_query_not_found"
    assert graphql.send(text, extensions=persisted).json() == {"data": {"count": 0}}
    assert graphql.send(None, extensions=persisted).json() == {"data": {"count": 0}}


def test_a_text_with_another_hash_is_rejected(graphql: GraphqlCaller) -> None:
    persisted = {"persistedQuery": {"version": 1, "sha256Hash": "0" * 64}}
    body = graphql.send("{ __typename }", extensions=persisted).json()
    assert body["errors"][0]["extensions"]["code"] == "invalid_body"


def test_members_may_introspect_the_schema_and_keys_of_apps_may_not(
    graphql: GraphqlCaller, things: CollectionClient
) -> None:
    look = "{ __schema { queryType { name } } }"
    assert graphql.refused(look)["extensions"]["code"] == "forbidden"
    admin = GraphqlCaller(type(graphql.caller)(graphql.caller.base, {}))
    admin.caller.headers["Authorization"] = f"Bearer {things.account.admin_key}"
    assert admin.ask(look)["__schema"]["queryType"] == {"name": "Query"}


def test_responses_contain_the_remaining_limits(graphql: GraphqlCaller) -> None:
    answer = graphql.send("{ __typename }")
    assert "RateLimit" in answer.headers
    assert answer.headers["X-Request-Id"]
