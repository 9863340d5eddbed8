"""No message over a connection makes the server fail, or affects other work of the connection."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from foundation.errors import CATALOGUE
from tenants.roles import DATA_SCOPES
from tests.contract.contract_resources import ContractResources, contract_resources
from tests.contract.hostile import ECHOED, mutated
from tests.contract.test_hostile_bodies import BODIES
from tests.contract.test_scopes import MESSAGES, graphql_connection, greeted
from tests.realtime.client import Client
from tests.realtime.client import opened as connected
from tests.rillbase_server.graphql.graphql_socket import GraphqlSocket

SEED, SAMPLE = 20261123, 40
_QUERY = BODIES["POST /v1/collections/{collection}/query"][0]
_WATCHED = {name: value for name, value in _QUERY.items() if name != "cursor"}
_OPTIONS = {"deliver": "events", "throttle_ms": 0, "events": ["add"]}
_PUBLICATION = BODIES["POST /v1/topics/{topic}/publications"][0]
_SUBSCRIPTION = BODIES["POST /v1/topics/{topic}/subscriptions"][0]
_ROWS = BODIES["POST /v1/aggregates/{aggregate}/query"][0]
_WRITE = {"idempotency_key": "k", "if_version": 1}

#: Members that each message can have besides those in the table of scopes.
MORE: dict[str, dict[str, Any]] = {
    "insert": {"idempotency_key": "k"},
    "replace": _WRITE,
    "update": {**_WRITE, "array_filters": [{"e": 1}], "upsert": True},
    "delete": _WRITE,
    "query": _QUERY,
    "publish": {n: v for n, v in _PUBLICATION.items() if n != "id"} | {"idempotency_key": "k"},
    "subscribe collection": {**_WATCHED, "options": _OPTIONS, "resume": "x"},
    "subscribe topic": {n: v for n, v in _SUBSCRIPTION.items() if n not in ("id", "webhook")},
    "subscribe aggregate": {n: v for n, v in _ROWS.items() if n != "snapshot"} | {"resume": "x"},
    "ping": {},
    "unsubscribe": {},
    "auth": {"token": "t", "key": "k", "tenant": "x"},
    "hello": {"token": "t"},
}


@pytest.fixture(scope="module")
def resources(server: str) -> ContractResources:
    return contract_resources(server)


def messages_of(kind: str) -> list[tuple[str, str]]:
    members = MESSAGES[kind][1] if kind in MESSAGES else {}
    body = {"type": kind.partition(" ")[0], "id": "m", **members, **MORE[kind]}
    return list(mutated(body))


def test_every_message_has_its_members_here() -> None:
    assert MESSAGES.keys() <= MORE.keys()


@pytest.mark.parametrize("kind", MORE)
def test_a_member_of_another_type_is_rejected_and_the_connection_stays_open(
    resources: ContractResources, kind: str
) -> None:
    picked = random.Random(SEED).sample(messages_of(kind), SAMPLE)
    failed = list(failures(resources, picked))
    assert not failed, "\n".join(failed)


@pytest.mark.long
@pytest.mark.parametrize("kind", MORE)
def test_no_member_of_any_type_makes_the_server_fail(
    resources: ContractResources, kind: str
) -> None:
    failed = list(failures(resources, messages_of(kind)))
    assert not failed, "\n".join(failed)


def failures(resources: ContractResources, messages: list[tuple[str, str]]) -> Iterator[str]:
    with greeted(resources.key(*DATA_SCOPES)) as client:
        for number, (what, text) in enumerate(messages):
            client.send_raw(text)
            for frame in answers_to(client, f"p{number}"):
                wrong = complaint_about(frame)
                if wrong:
                    yield f"{what}: {wrong}"


def answers_to(client: Client, name: str) -> Iterator[dict[str, Any]]:
    """Yield the frames received before the answer to a ping, and end the subscriptions that were
    started.
    """
    client.send(type="unsubscribe", id="m")
    client.send(type="ping", id=name)
    client.send(type="query", id=f"q{name}", collection="things", limit=1)
    for last in (name, f"q{name}"):
        while (frame := client.next()).get("id") != last:
            yield frame


def complaint_about(frame: dict[str, Any]) -> str:
    error = frame.get("error") or {}
    if error.get("status", 200) >= 500 or error.get("code", "not_found") not in CATALOGUE:
        return str(frame)[:300]
    return "the answer repeats what was sent" if ECHOED in json.dumps(error) else ""


@pytest.mark.parametrize("field", ["token", "key", "tenant"])
def test_no_greeting_makes_the_server_fail(resources: ContractResources, field: str) -> None:
    body = {"type": "hello", field: "x"}
    for what, text in random.Random(SEED).sample(list(mutated(body)), SAMPLE):
        with connected(resources.base, by_socket=True) as client:
            client.send_raw(text)
            frame = client.next()
            assert not complaint_about(frame), (what, frame)
            assert client.closed()[0] in (1008, 1009, 4400, 4401, 4403), what


def test_no_message_of_graphql_makes_the_server_fail(resources: ContractResources) -> None:
    body = {
        "id": "m",
        "type": "subscribe",
        "payload": {
            "query": "query ($c: String!, $f: JSON) { count(collection: $c, filter: $f) }",
            "variables": {"c": "things", "f": {"n": 1}},
            "operationName": None,
            "extensions": {"persistedQuery": {"version": 1, "sha256Hash": "0" * 64}},
        },
    }
    for what, text in random.Random(SEED).sample(list(mutated(body)), 6 * SAMPLE):
        with graphql_connection(resources.key(*DATA_SCOPES)) as client:
            client._connection.send(text)
            # The server may have closed the connection already.
            with suppress(ConnectionClosed):
                client.send(type="ping")
            assert not failure_of(client), what


def failure_of(client: GraphqlSocket) -> str:
    """Return what is wrong with the answer to a message, or with how the connection was closed."""
    try:
        text = str(client._connection.recv(timeout=30))
    except ConnectionClosed as closed:
        code = 0 if closed.rcvd is None else closed.rcvd.code
        return "" if 4400 <= code < 4500 else f"closed with {code}"
    return text if '"internal"' in text or '"status":5' in text else ""


#: Arguments of GraphQL's fields, as variables of the types that they have.
ASKED: dict[str, tuple[str, dict[str, Any]]] = {
    "documents": (
        (
            "query ($c: String!, $f: JSON, $s: JSON, $p: JSON, $l: JSON, $n: Int, $a: String) {"
            " documents(collection: $c, filter: $f, sort: $s, projection: $p, lookup: $l,"
            " first: $n, after: $a) { nodes { id document } pageInfo { endCursor } totalCount } }"
        ),
        {
            "c": "things",
            "f": {"n": 1},
            "s": [["n", 1]],
            "p": {"n": 1},
            "l": None,
            "n": 5,
            "a": "W10",
        },
    ),
    "groups": (
        (
            'query ($b: [String!]!, $m: JSON, $f: JSON) { groups(collection: "things", by: $b,'
            " measures: $m, filter: $f) { nodes { __typename } } }"
        ),
        {"b": ["n"], "m": {"k": {"op": "count"}}, "f": {}},
    ),
    "node": ("query ($i: ID!) { node(id: $i) { id } }", {"i": "W10"}),
    "update": (
        (
            "mutation ($k: JSON!, $u: JSON!, $f: JSON, $v: Int, $i: String) { updateDocument("
            'collection: "things", key: $k, update: $u, arrayFilters: $f, ifVersion: $v,'
            " idempotencyKey: $i) { id } }"
        ),
        {"k": "g", "u": {"$set": {"n": 1}}, "f": [{"e": 1}], "v": 1, "i": "k"},
    ),
    "bulk": (
        'mutation ($o: [JSON!]!) { bulkWrite(collection: "things", operations: $o) }',
        {"o": [{"insert": {"n": 1}}, {"update": {"id": "g", "update": {"$set": {"n": 1}}}}]},
    ),
    "publications": (
        (
            "query ($t: String!, $i: String, $g: JSON, $f: String) { publications(topic: $t,"
            " id: $i, geo: $g, from: $f) { nodes { __typename } } }"
        ),
        {"t": "news", "i": "1", "g": None, "f": "-10s"},
    ),
    "publish": (
        (
            "mutation ($i: String, $d: JSON, $p: String, $a: String, $e: Float) { publish("
            'topic: "news", id: $i, data: $d, publicationId: $p, at: $a, expiresInS: $e)'
            " { __typename } }"
        ),
        {"i": "1", "d": {"n": 1}, "p": "p", "a": "-1s", "e": 5.5},
    ),
    "datasetRows": (
        'query ($q: JSON!) { datasetRows(dataset: "shop", query: $q) { rows } }',
        {"q": {"table": "orders", "filter": {"id": {"$gt": 1}}}},
    ),
    "datasetSql": (
        'query ($s: JSON!) { datasetSql(dataset: "shop", statement: $s) { rows } }',
        {"s": {"sql": "SELECT $1 AS a", "parameters": [1]}},
    ),
    "addEvents": (
        (
            'mutation ($e: [JSON!]!) { addEvents(aggregate: "requests_5m", events: $e)'
            " { __typename } }"
        ),
        {"e": [{"customer": "c", "latency_ms": 5, "at": 1}]},
    ),
    "tenants": (
        "query ($n: Int, $a: String) { tenants(first: $n, after: $a) { nodes { slug } } }",
        {"n": 1, "a": "W10"},
    ),
}


@pytest.mark.parametrize("field", ASKED)
def test_no_variable_of_graphql_makes_the_server_fail(
    resources: ContractResources, field: str
) -> None:
    query, variables = ASKED[field]
    caller = resources.key(*DATA_SCOPES, "admin")
    for what, text in random.Random(SEED).sample(list(mutated(variables)), SAMPLE):
        raw = b'{"query":%b,"variables":%b}' % (json.dumps(query).encode(), text.encode())
        answer = caller.call("POST", "/graphql", raw=raw)
        assert answer.status_code < 500, (what, answer.text)
        for error in answer.json().get("errors", ()):
            assert error["extensions"]["status"] < 500, (what, error)
            assert ECHOED not in json.dumps(error), what
