"""Ids, cursors and values that clients make up are refused, and nothing fails on them."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.documents.collection import CollectionClient
from tests.rillbase_server.graphql.graphql_caller import GraphqlCaller

#: Extended JSON that is none, and what no document can have as its key.
KEYS: dict[str, Any] = {
    "an impossible date": {"$date": "2026-02-30T00:00:00Z"},
    "no date": {"$date": "x"},
    "an impossible ObjectId": {"$oid": "x"},
    "a whole number of more than 64 bits": {"$numberLong": "9" * 30},
    "a number beyond all doubles": 10**400,
    "a number of very many digits": 10**4000,
    "no UUID": {"$uuid": "x"},
    "no base64": {"$binary": {"base64": "!", "subType": "zz"}},
    "a time before time": {"$timestamp": {"t": -1, "i": 5}},
    "a list": [1],
    "a regular expression": {"$regularExpression": {"pattern": "a", "options": ""}},
}
TEXTS = {
    "nothing": b"",
    "no JSON": b"x",
    "another shape": b"[1,2]",
    "no key": b'["things"]',
    "NaN": b'["things",NaN]',
    "an infinite number": b'["things",1e999]',
    "a lone surrogate": b'["\\ud800","a"]',
    "a NUL character": b'["things","\\u0000"]',
    "no UTF-8": b'["things","\xff"]',
    "too deep": b"[" * 5000,
    "digits without end": b'["things",' + b"9" * 5000 + b"]",
}
NODE = "query ($id: ID!) { node(id: $id) { id } }"
NODES = "query ($id: ID!) { nodes(ids: [$id]) { id } }"


def packed(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def refusal(graphql: GraphqlCaller, query: str, **variables: object) -> dict[str, Any]:
    extensions: dict[str, Any] = graphql.refused(query, **variables)["extensions"]
    assert extensions["status"] == 400, extensions
    return extensions


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_an_id_with_an_impossible_key_names_no_document(
    graphql: GraphqlCaller, things: CollectionClient, key: object
) -> None:
    made_up = packed(json.dumps([things.name, key]).encode())
    for query in (NODE, NODES):
        body = graphql.send(query, variables={"id": made_up}).json()
        if "errors" in body:
            assert body["errors"][0]["extensions"]["code"] in ("invalid_body", "invalid_id")
        else:
            assert body["data"] in ({"node": None}, {"nodes": [None]})


@pytest.mark.parametrize("raw", TEXTS.values(), ids=TEXTS)
def test_ids_and_cursors_are_read_strictly(
    graphql: GraphqlCaller, things: CollectionClient, raw: bytes
) -> None:
    for query in (NODE, NODES):
        assert refusal(graphql, query, id=packed(raw))["errors"][0]["pointer"] == "/id"
    pages = (
        "query ($c: String!, $at: String) { documents(collection: $c, after: $at) { totalCount } }"
    )
    error = refusal(graphql, pages, c=things.name, at=packed(raw))
    assert error["errors"][0]["pointer"] == "/after"


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_a_key_that_is_not_extended_json_is_rejected_as_by_rest(
    graphql: GraphqlCaller, things: CollectionClient, key: object
) -> None:
    query = "query ($c: String!, $key: JSON!) { document(collection: $c, key: $key) { id } }"
    body = graphql.send(query, variables={"c": things.name, "key": key}).json()
    for error in body.get("errors", ()):
        assert error["extensions"]["status"] == 400, error


def test_a_variable_that_does_not_fit_its_type_is_the_clients_mistake(
    graphql: GraphqlCaller,
) -> None:
    query = "query ($c: String!, $key: JSON!) { document(collection: $c, key: $key) { id } }"
    for variables in ({"c": 5, "key": "a"}, {"c": "things", "key": None}, {}):
        for error in graphql.send(query, variables=variables).json()["errors"]:
            assert error["extensions"]["code"] == "invalid_operation"


@pytest.mark.parametrize("literal", ["9" * 5000, "-1e99999", '"\\u0000"', '"\\uD800"'])
def test_literals_are_read_as_strictly_as_variables(graphql: GraphqlCaller, literal: str) -> None:
    for field in (
        f'document(collection: "things", key: {literal}) {{ id }}',
        f'count(collection: "things", filter: {{n: {literal}}})',
    ):
        refusal(graphql, f"{{ {field} }}")


def test_variables_by_get_are_read_strictly(
    graphql: GraphqlCaller, things: CollectionClient
) -> None:
    for text in ('{"c": NaN}', '{"c": "\\ud800"}', '{"c": 1, "c": 2}', "{", "[" * 5000):
        parameters = {"query": "query ($c: String!) { count(collection: $c) }", "variables": text}
        body = graphql.caller.get("/graphql?" + urlencode(parameters)).json()
        assert body["errors"][0]["extensions"]["code"] == "malformed_json", text


def test_a_very_deeply_nested_operation_is_rejected(graphql: GraphqlCaller) -> None:
    for depth in (50, 200, 400, 2000):
        for inner in (
            "{ " * depth + "id" + " }" * depth,
            "... { " * depth + "__typename" + " }" * depth,
        ):
            text = inner if inner.startswith("{") else f"{{ {inner} }}"
            body = graphql.send(text).json()
            for error in body.get("errors", ()):
                assert error["extensions"]["status"] == 400, error
        listed = "[" * depth + "]" * depth
        body = graphql.send(f'{{ count(collection: "x", filter: {{a: {listed}}}) }}').json()
        assert body["errors"][0]["extensions"]["status"] in (400, 404), body
