"""How operations arrive by HTTP, and what is too much."""

from __future__ import annotations

import json
from hashlib import sha256
from urllib.parse import urlencode

import pytest

from tests.caller import anonymous, signed_in
from tests.documents.collection import MadeCollection
from tests.rillbase_server.graphql.asking import Asking

NEWER = "application/graphql-response+json"


def test_queries_may_be_sent_by_get_and_mutations_not(
    asking: Asking, things: MadeCollection
) -> None:
    text = "query ($c: String!) { count(collection: $c) }"
    sent = urlencode({"query": text, "variables": json.dumps({"c": things.name})})
    assert asking.caller.get(f"/graphql?{sent}").json() == {"data": {"count": 0}}
    changing = (
        f'mutation {{ insertDocument(collection: "{things.name}", document: {{}}) {{ id }} }}'
    )
    refused = asking.caller.get("/graphql?" + urlencode({"query": changing}))
    assert refused.status_code == 405
    assert things.query() == []


def test_calls_without_credentials_are_rejected(server: str) -> None:
    answer = anonymous(server).post("/graphql", {"query": "{ __typename }"})
    assert answer.status_code == 401
    assert answer.json()["errors"][0]["extensions"]["code"] == "unauthenticated"


def test_a_member_without_a_tenant_is_told_to_name_one(server: str, things: MadeCollection) -> None:
    asking = Asking(signed_in(server, things.made.owner))
    error = asking.refused(f'{{ count(collection: "{things.name}") }}')
    assert error["extensions"]["code"] == "invalid_parameter"
    asking.caller.headers["Rillbase-Tenant"] = things.made.slug
    assert asking.ask(f'{{ count(collection: "{things.name}") }}') == {"count": 0}


def test_clients_of_the_newer_media_type_get_an_error_status(
    asking: Asking,
) -> None:
    older = asking.caller.post("/graphql", {"query": "{ nope }"})
    newer = asking.caller.post("/graphql", {"query": "{ nope }"}, Accept=NEWER)
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
def test_invalid_operations_are_rejected(asking: Asking, body: object, code: str) -> None:
    found = asking.caller.post("/graphql", body).json()
    assert found["errors"][0]["extensions"]["code"] == code


def test_the_depth_of_an_operation_is_limited(asking: Asking) -> None:
    deep = "{ __schema { types " + "{ ofType " * 0 + "{ fields { type " + "{ ofType " * 14
    text = deep + "{ name }" + " }" * 14 + " } } } }"
    assert "deep" in asking.refused(text)["message"]


def test_the_aliases_of_an_operation_are_limited(asking: Asking) -> None:
    many = " ".join(f"a{n}: __typename" for n in range(40))
    assert "aliases" in asking.refused(f"{{ {many} }}")["message"]


def test_multiplying_fragments_are_rejected_cheaply(asking: Asking) -> None:
    levels = "".join(
        f"fragment F{n} on Query {{ a{n}: __typename ...F{n + 1} ...F{n + 1} }} " for n in range(35)
    )
    text = "{ ...F0 } " + levels + "fragment F35 on Query { __typename }"
    assert asking.refused(text)["extensions"]["code"] == "invalid_operation"


def test_lists_through_lists_are_weighed_before_anything_is_read(
    asking: Asking, things: MadeCollection
) -> None:
    fields = "key version createdAt updatedAt collection document id"
    page = f'documents(collection: "{things.name}", first: 1000) {{ nodes {{ {fields} }} }}'
    text = "{" + " ".join(f"p{n}: {page}" for n in range(29)) + "}"
    error = asking.refused(text)
    assert error["extensions"]["code"] == "query_too_expensive"
    by_variable = asking.send(
        f'query ($n: Int) {{ documents(collection: "{things.name}", first: $n) '
        "{ nodes { key } } }",
        variables={"n": 100_000_000},
    ).json()
    assert by_variable["errors"][0]["extensions"]["code"] == "query_too_expensive"


def test_a_persisted_query_is_found_by_its_hash(
    asking: Asking, things: MadeCollection, server: str
) -> None:
    text = f'{{ count(collection: "{things.name}") }}'
    persisted = {"persistedQuery": {"version": 1, "sha256Hash": sha256(text.encode()).hexdigest()}}
    unknown = asking.send(None, extensions=persisted).json()["errors"][0]
    assert unknown["message"] == "PersistedQueryNotFound"
    assert unknown["extensions"]["code"] == "persisted_query_not_found"
    assert asking.send(text, extensions=persisted).json() == {"data": {"count": 0}}
    assert asking.send(None, extensions=persisted).json() == {"data": {"count": 0}}


def test_a_text_with_another_hash_is_rejected(asking: Asking) -> None:
    persisted = {"persistedQuery": {"version": 1, "sha256Hash": "0" * 64}}
    found = asking.send("{ __typename }", extensions=persisted).json()
    assert found["errors"][0]["extensions"]["code"] == "invalid_body"


def test_members_may_introspect_the_schema_and_keys_of_apps_may_not(
    asking: Asking, things: MadeCollection
) -> None:
    look = "{ __schema { queryType { name } } }"
    assert asking.refused(look)["extensions"]["code"] == "forbidden"
    admin = Asking(type(asking.caller)(asking.caller.base, {}))
    admin.caller.headers["Authorization"] = f"Bearer {things.made.admin_key}"
    assert admin.ask(look)["__schema"]["queryType"] == {"name": "Query"}


def test_responses_contain_the_remaining_limits(asking: Asking) -> None:
    answer = asking.send("{ __typename }")
    assert "RateLimit" in answer.headers
    assert answer.headers["X-Request-Id"]
