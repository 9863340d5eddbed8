"""Every scope against every call, over every protocol.

The calls come from their declarations: one that this table does not know fails the tests.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from graphql import GraphQLSchema

from connections.subscriptions import SubscriptionKinds
from rillbase_server.live import MESSAGE_CALLS
from tenants.roles import DATA_SCOPES, RETIRED_SCOPES
from tests.caller import Caller, problem, with_key
from tests.contract.contract_resources import ContractResources, begin, contract_resources, declared
from tests.contract.test_isolation import address, tenant_routes
from tests.contract.victim import victim
from tests.realtime.client import Client
from tests.realtime.client import opened as connected
from tests.rillbase_server.graphql.graphql_socket import GraphqlSocket
from tests.rillbase_server.graphql.graphql_socket import opened as listening

ALONE = (*DATA_SCOPES, "admin", *RETIRED_SCOPES)
READ, WRITE = "documents:read", "documents:write"
_DOCUMENTS, _TOPIC = "/v1/collections/{collection}", "/v1/topics/{topic}"
_AGGREGATE, _DATASET = "/v1/aggregates/{aggregate}", "/v1/datasets/{dataset}"
_ICEBERG = "/v1/iceberg/v1"
_NAMESPACES = f"{_ICEBERG}/{{tenant}}/namespaces"

#: The scope that each call needs; None if it needs none.
CALLS: dict[str, str | None] = {
    f"POST {_DOCUMENTS}/documents": WRITE,
    f"GET {_DOCUMENTS}/documents": READ,
    f"GET {_DOCUMENTS}/documents/{{id}}": READ,
    f"PUT {_DOCUMENTS}/documents/{{id}}": WRITE,
    f"PATCH {_DOCUMENTS}/documents/{{id}}": WRITE,
    f"DELETE {_DOCUMENTS}/documents/{{id}}": WRITE,
    f"POST {_DOCUMENTS}/documents:get": READ,
    f"POST {_DOCUMENTS}/documents:bulk": WRITE,
    f"POST {_DOCUMENTS}/documents:update": WRITE,
    f"POST {_DOCUMENTS}/documents:delete": WRITE,
    f"POST {_DOCUMENTS}/query": READ,
    f"POST {_DOCUMENTS}/count": READ,
    f"POST {_DOCUMENTS}/explain": READ,
    f"POST {_DOCUMENTS}/import": WRITE,
    f"POST {_DOCUMENTS}/import:preview": WRITE,
    f"GET {_DOCUMENTS}/imports": WRITE,
    f"GET {_DOCUMENTS}/imports/{{id}}": WRITE,
    f"GET {_DOCUMENTS}/export": READ,
    f"GET {_DOCUMENTS}/live": READ,
    "POST /v1/transactions": WRITE,
    "POST /v1/realtime/tickets": None,
    f"POST {_TOPIC}/publications": "topics:write",
    f"GET {_TOPIC}/publications": "topics:read",
    f"POST {_TOPIC}/subscriptions": "topics:read",
    f"DELETE {_TOPIC}/subscriptions/{{subscription}}": "topics:read",
    f"GET {_TOPIC}/subscriptions/{{subscription}}/live": "topics:read",
    f"POST {_AGGREGATE}/events": "aggregates:write",
    f"POST {_AGGREGATE}/query": "aggregates:read",
    f"GET {_AGGREGATE}/live": "aggregates:read",
    f"GET {_DATASET}": "analytics:read",
    f"GET {_DATASET}/pipeline": "analytics:read",
    f"POST {_DATASET}/query": "analytics:read",
    f"POST {_DATASET}/sql": "analytics:read",
    f"POST {_DATASET}/uploads": "analytics:write",
    f"POST {_DATASET}/uploads:preview": "analytics:write",
    f"GET {_DATASET}/uploads/{{upload}}": "analytics:read",
    f"POST {_DATASET}/uploads/{{upload}}:append": "analytics:write",
    f"POST {_DATASET}/uploads/{{upload}}:commit": "analytics:write",
    f"POST {_DATASET}/uploads/{{upload}}:abort": "analytics:write",
    f"GET {_ICEBERG}/config": "analytics:read",
    f"GET {_NAMESPACES}": "analytics:read",
    f"GET {_NAMESPACES}/{{namespace}}": "analytics:read",
    f"GET {_NAMESPACES}/{{namespace}}/tables": "analytics:read",
    f"GET {_NAMESPACES}/{{namespace}}/tables/{{table}}": "analytics:read",
}
#: Calls of documents that end users may not make, whatever their key carries.
NOT_FOR_END_USERS = {f"POST {_DOCUMENTS}/explain"}

#: Messages of the native protocol: `subscribe` counts as a separate type for each kind of source.
MESSAGES: dict[str, tuple[str, dict[str, Any]]] = {
    "insert": (WRITE, {"collection": "things", "document": {}}),
    "replace": (WRITE, {"collection": "things", "key": "m", "document": {}}),
    "update": (WRITE, {"collection": "things", "key": "m", "update": {"$set": {"n": 1}}}),
    "delete": (WRITE, {"collection": "things", "key": "m"}),
    "query": (READ, {"collection": "things"}),
    "publish": ("topics:write", {"topic": "news", "topic_id": "1"}),
    "subscribe collection": (READ, {"collection": "things"}),
    "subscribe topic": ("topics:read", {"topic": "news", "topic_id": "1"}),
    "subscribe aggregate": ("aggregates:read", {"aggregate": "requests_5m"}),
}

_C, _K = 'collection: "things"', 'collection: "things", key: "g"'
#: Fields of GraphQL that call the data plane.
FIELDS: dict[str, tuple[str, str]] = {
    "Query.documents": (READ, f"documents({_C}) {{ totalCount }}"),
    "Query.document": (READ, f"document({_K}) {{ id }}"),
    "Query.count": (READ, f"count({_C})"),
    "Query.explain": (READ, f"explain({_C})"),
    "Query.node": (READ, 'node(id: "WyJ0aGluZ3MiLCJhIl0") { id }'),
    "Query.nodes": (READ, 'nodes(ids: ["WyJ0aGluZ3MiLCJhIl0"]) { id }'),
    "Query.groups": (READ, f'groups({_C}, by: ["n"]) {{ __typename }}'),
    "Query.publications": ("topics:read", 'publications(topic: "news", id: "1") { __typename }'),
    "Query.aggregateRows": (
        "aggregates:read",
        'aggregateRows(aggregate: "requests_5m") { __typename }',
    ),
    "Query.datasetRows": (
        "analytics:read",
        'datasetRows(dataset: "shop", query: {table: "orders"}) { __typename }',
    ),
    "Query.datasetSql": (
        "analytics:read",
        'datasetSql(dataset: "shop", statement: {sql: "SELECT 1"}) { __typename }',
    ),
    "Mutation.insertDocument": (WRITE, f"insertDocument({_C}, document: {{}}) {{ id }}"),
    "Mutation.replaceDocument": (WRITE, f"replaceDocument({_K}, document: {{}}) {{ id }}"),
    "Mutation.updateDocument": (WRITE, f"updateDocument({_K}, update: {{}}) {{ id }}"),
    "Mutation.mergeDocument": (WRITE, f"mergeDocument({_K}, patch: {{}}) {{ id }}"),
    "Mutation.deleteDocument": (WRITE, f"deleteDocument({_K})"),
    "Mutation.updateDocuments": (
        WRITE,
        f'updateDocuments({_C}, filter: {{_id: "-"}}, update: {{}})',
    ),
    "Mutation.deleteDocuments": (WRITE, f'deleteDocuments({_C}, filter: {{_id: "-"}})'),
    "Mutation.bulkWrite": (WRITE, f"bulkWrite({_C}, operations: [{{insert: {{}}}}])"),
    "Mutation.transact": (
        WRITE,
        f"transact(operations: [{{{_C}, insert: {{}}}}])",
    ),
    "Mutation.publish": ("topics:write", 'publish(topic: "news", id: "1") { __typename }'),
    "Mutation.addEvents": (
        "aggregates:write",
        'addEvents(aggregate: "requests_5m", events: [{}]) { __typename }',
    ),
    "Subscription.documents": (READ, f"documents({_C}) {{ kind }}"),
    "Subscription.groups": (READ, f'groups({_C}, by: ["n"]) {{ kind }}'),
    "Subscription.publications": (
        "topics:read",
        'publications(topic: "news", topicId: "1") { kind }',
    ),
    "Subscription.aggregateRows": (
        "aggregates:read",
        'aggregateRows(aggregate: "requests_5m") { kind }',
    ),
}
#: Fields that call the control plane, besides mutations with a tenant argument.
CONTROL = {
    "Query.viewer",
    "Query.tenant",
    "Query.tenants",
    "Mutation.createTenant",
}


@pytest.fixture(scope="module")
def resources(server: str) -> ContractResources:
    return contract_resources(server)


def refusal_of(status: int, code: object, detail: object, needed: str) -> str:
    """Return what is wrong with a rejection, or nothing if it names the missing scope."""
    if (status, code) == (403, "missing_scope") and needed in str(detail):
        return ""
    return f"{status} {code} {detail}"


def test_every_call_has_a_scope_in_the_table() -> None:
    assert declared().keys() == CALLS.keys()


def test_every_message_has_a_scope_in_the_table() -> None:
    from rillbase_server import live

    kinds: SubscriptionKinds = live.build().kinds
    sources = {f"subscribe {member}" for member in kinds._by_member}
    assert MESSAGES.keys() == {*MESSAGE_CALLS, *sources}


def test_every_field_of_graphql_is_in_a_table(resources: ContractResources) -> None:
    schema = _schema()
    types = [schema.query_type, schema.mutation_type, schema.subscription_type]
    for kind in types:
        assert kind is not None
        for name, field in kind.fields.items():
            is_control = f"{kind.name}.{name}" in CONTROL or (
                kind.name == "Mutation" and "tenant" in field.args
            )
            assert (f"{kind.name}.{name}" in FIELDS) is not is_control, f"{kind.name}.{name}"


def _schema() -> GraphQLSchema:
    import asyncio

    from rillbase_server.graphql.assembly import Schemas

    return asyncio.run(Schemas().of(None)).schema


@pytest.mark.parametrize("scope", ALONE)
def test_a_key_with_one_scope_can_make_only_the_calls_of_that_scope(
    resources: ContractResources, scope: str
) -> None:
    caller, wrong = resources.key(scope), []
    for name, operation in declared().items():
        answer = begin(caller, operation, resources.path(operation))
        needed = CALLS[name]
        if needed in (None, scope):
            result = "" if answer.status_code not in (401, 403) else answer.text
        else:
            body = answer.json() if answer.status_code >= 400 else {}
            result = refusal_of(answer.status_code, body.get("code"), body.get("detail"), needed)
        wrong += [f"{name}: {result}"] if result else []
    assert wrong == []


@contextmanager
def greeted(caller: Caller) -> Iterator[Client]:
    with connected(caller.base, caller.headers) as client:
        assert client.next()["type"] == "welcome"
        yield client


def answer_of(client: Client, number: int, kind: str, members: dict[str, Any]) -> dict[str, Any]:
    """Send a message and return its answer: an acknowledgement or a first frame."""
    name = str(number)
    client.send(type=kind.partition(" ")[0], id=name, **members)
    frame = client.wait_for(lambda f: f.get("id") == name)
    error: dict[str, Any] = frame.get("error") or {}
    return error


@pytest.mark.parametrize("scope", ALONE)
def test_a_key_with_one_scope_can_send_only_the_messages_of_that_scope(
    resources: ContractResources, scope: str
) -> None:
    with greeted(resources.key(scope)) as client:
        for number, (kind, (needed, members)) in enumerate(MESSAGES.items()):
            error = answer_of(client, number, kind, members)
            if needed == scope:
                assert error.get("status") not in (401, 403), (kind, error)
            else:
                given = error.get("status", 200), error.get("code"), error.get("detail")
                assert refusal_of(*given, needed) == "", (kind, error)


@contextmanager
def graphql_connection(caller: Caller) -> Iterator[GraphqlSocket]:
    with listening(caller.base, caller.headers) as client:
        client.send(type="connection_init")
        assert client.next() == {"type": "connection_ack"}
        yield client


def errors_of(client: GraphqlSocket, name: str, text: str) -> list[dict[str, Any]]:
    """Run an operation and return the errors of its first answer; end it."""
    client.subscribe(name, text)
    first = client.next()
    assert first["id"] == name
    client.send(type="complete", id=name)
    result = first.get("payload", [])
    errors: list[dict[str, Any]] = result.get("errors", []) if isinstance(result, dict) else result
    return errors


@pytest.mark.parametrize("scope", ALONE)
def test_a_key_with_one_scope_can_use_only_the_graphql_fields_of_that_scope(
    resources: ContractResources, scope: str
) -> None:
    caller = resources.key(scope)
    for field, (needed, text) in FIELDS.items():
        kind = field.partition(".")[0].lower()
        whole = f"{kind} {{ {text} }}"
        if kind == "subscription":
            with graphql_connection(caller) as client:
                errors = errors_of(client, "s", whole)
        else:
            errors = caller.post("/graphql", {"query": whole}).json().get("errors", [])
        extensions = errors[0]["extensions"] if errors else {}
        if needed == scope:
            assert extensions.get("status") not in (401, 403), (field, errors)
        else:
            given = extensions.get("status", 200), extensions.get("code"), errors[0]["message"]
            assert refusal_of(*given, needed) == "", (field, errors)


@pytest.mark.parametrize("scope", [*DATA_SCOPES, *RETIRED_SCOPES])
def test_no_scope_of_the_data_plane_opens_the_control_plane(
    resources: ContractResources, scope: str
) -> None:
    caller = resources.key(scope)
    ids = victim().ids
    for route in tenant_routes():
        problem(caller.get(address(route, resources.account.slug, ids)), 403, "forbidden")
    request = f'{{ tenant(slug: "{resources.account.slug}") {{ name }} }}'
    (error,) = caller.post("/graphql", {"query": request}).json()["errors"]
    assert error["extensions"]["code"] == "forbidden"


def test_the_scope_admin_opens_the_control_plane(resources: ContractResources) -> None:
    caller = resources.key("admin")
    assert caller.get(f"/api/v1/tenants/{resources.account.slug}/members").status_code == 200
    request = f'{{ tenant(slug: "{resources.account.slug}") {{ slug }} }}'
    body = caller.post("/graphql", {"query": request}).json()
    assert body == {"data": {"tenant": {"slug": resources.account.slug}}}


def test_a_key_bound_to_another_collection_reaches_this_one_by_no_call(
    resources: ContractResources,
) -> None:
    caller = resources.key(*DATA_SCOPES, collections=["elsewhere"])
    for name, operation in declared().items():
        if "{collection}" in name:
            problem(begin(caller, operation, resources.path(operation)), 403, "forbidden")
    body = {"operations": [{"collection": "things", "insert": {}}]}
    problem(caller.post("/v1/transactions", body), 403, "forbidden")
    looked_up = {"lookup": [{"from": "things", "local": "x", "as": "y"}]}
    own = resources.key(*DATA_SCOPES, collections=["things"])
    assert own.post(f"{resources.things.path}/query", looked_up).status_code == 200
    ticket = {"live": {"collection": "things"}}
    problem(caller.post("/v1/realtime/tickets", ticket), 403, "forbidden")
    with greeted(caller) as client:
        for number, (kind, (_, members)) in enumerate(MESSAGES.items()):
            if "collection" in members:
                assert answer_of(client, number, kind, members)["code"] == "forbidden", kind
    for field, (_, text) in FIELDS.items():
        if "things" in text and not field.startswith("Subscription"):
            kind = field.partition(".")[0].lower()
            content = caller.post("/graphql", {"query": f"{kind} {{ {text} }}"}).json()
            assert content["errors"][0]["extensions"]["code"] == "forbidden", field


@pytest.mark.parametrize("who", ["anonymous", "end_user"])
def test_end_users_reach_only_documents_whatever_the_scopes_of_their_key(
    resources: ContractResources, who: str
) -> None:
    caller: Caller = getattr(resources, who)()
    for name, operation in declared().items():
        answer = begin(caller, operation, resources.path(operation))
        if (CALLS[name] or READ).startswith("documents:") and name not in NOT_FOR_END_USERS:
            assert answer.status_code != 401, name
            if CALLS[name] == READ:
                assert answer.status_code != 403, (name, answer.text)
        else:
            problem(answer, 403, "forbidden")
    problem(caller.get(f"/api/v1/tenants/{resources.account.slug}/members"), 403, "forbidden")
    ticket = {"live": {"topic": "news", "subscription_id": resources.names["subscription"]}}
    problem(caller.post("/v1/realtime/tickets", ticket), 403, "forbidden")
    with greeted(caller) as client:
        for number, (kind, (needed, members)) in enumerate(MESSAGES.items()):
            if not needed.startswith("documents:"):
                assert answer_of(client, number, kind, members)["code"] == "forbidden", kind
    for field, (needed, text) in FIELDS.items():
        if not needed.startswith("documents:") and not field.startswith("Subscription"):
            kind = field.partition(".")[0].lower()
            body = caller.post("/graphql", {"query": f"{kind} {{ {text} }}"}).json()
            assert body["errors"][0]["extensions"]["code"] == "forbidden", field


def test_a_retired_scope_is_accepted_and_permits_nothing(resources: ContractResources) -> None:
    admin = resources.key("admin")
    path = f"/api/v1/tenants/{resources.account.slug}/api-keys"
    keys = {}
    for kind in ("secret", "publishable"):
        body = {"name": "old", "kind": kind, "scopes": ["documents:read", "realtime"]}
        created = admin.post(path, body)
        assert created.status_code == 201, created.text
        assert created.json()["scopes"] == ["documents:read", "realtime"]
        keys[kind] = created.json()
    page = Caller(resources.base, {"Rillbase-Key": keys["publishable"]["key"]})
    for caller in (page, with_key(resources.base, keys["secret"]["secret"])):
        assert caller.get("/v1/whoami").json()["scopes"] == ["documents:read"]


def test_a_write_only_key_does_not_see_existing_documents(resources: ContractResources) -> None:
    resources.things.insert({"_id": "kept", "secret": "s"})
    writer = resources.key(WRITE)
    changed = writer.patch(f"{resources.things.path}/documents/kept", {"$set": {"n": 1}})
    assert changed.status_code == 200
    assert "secret" not in json.dumps(changed.json())
    merged = writer.call(
        "PATCH",
        f"{resources.things.path}/documents/kept",
        raw=b"{}",
        Content_Type="application/merge-patch+json",
    )
    assert (merged.status_code, merged.json()) == (200, {})
