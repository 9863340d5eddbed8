"""Fields of a collection's own types answer for hidden and absent documents alike."""

from __future__ import annotations

import json

import pytest

from tests.caller import with_key
from tests.documents.api.test_access_rules import AUDIENCE, ISSUER, RULES, SECRET, user
from tests.documents.api.test_hidden_documents import ABSENT, HIDDEN, strip
from tests.documents.collection import CollectionClient, make_collection

_TEXT = {"type": "string"}
SCHEMA = {"type": "object", "properties": {"owner": _TEXT, "code": _TEXT, "ref": _TEXT}}
READING = [
    "todosByKey(key: $k) { version document { owner } }",
    "todos(filter: {code: {eq: $s}}) { totalCount nodes { version } pageInfo { hasNextPage } }",
    "todosGroups(filter: {code: {eq: $s}}, by: [owner]) { nodes { __typename } }",
]
WRITING = [
    "todosUpdate(key: $k, update: $u) { version }",
    "todosUpdate(key: $k, update: $u, ifVersion: 1) { version }",
    "todosUpdate(key: $k, update: $o, upsert: true) { version }",
    "todosMerge(key: $k, patch: $p) { version }",
    'todosReplace(key: $k, document: {owner: "bob"}) { version }',
    'todosReplace(key: $k, document: {owner: "ada"}, ifVersion: 1) { version }',
    "todosDelete(key: $k)",
    "todosDelete(key: $k, ifVersion: 1)",
]
VARIABLES = {
    "$u": ("JSON!", {"$set": {"code": "x"}}),
    "$o": ("JSON!", {"$set": {"owner": "bob"}}),
    "$p": ("JSON!", {"code": "x"}),
}


@pytest.fixture(scope="module")
def todos(server: str) -> CollectionClient:
    todos = make_collection(server, name="todos", schema=SCHEMA, rules=RULES)
    issuer = {"name": "login", "issuer": ISSUER, "audience": AUDIENCE, "algorithms": ["HS256"]}
    path = f"/api/v1/tenants/{todos.account.slug}/issuers"
    admin = with_key(server, todos.account.admin_key)
    assert admin.post(path, {**issuer, "secret": SECRET}).status_code == 201
    todos.insert({"_id": HIDDEN, "owner": "bob", "code": HIDDEN})
    todos.insert({"_id": "ada's", "owner": "ada", "code": "own"})
    return todos


def answer_to(todos: CollectionClient, kind: str, field: str, identity: str) -> str:
    """Return the answer to a field, but for the names of the request and of the document."""
    given = {"$k": ("JSON!", identity), "$s": ("String!", identity), **VARIABLES}
    used = {name: value for name, value in given.items() if name in field}
    heading = ", ".join(f"{name}: {of}" for name, (of, _) in used.items())
    body = {
        "query": f"{kind} ({heading}) {{ {field} }}",
        "variables": {name[1:]: value for name, (_, value) in used.items()},
    }
    answer = user(todos).post("/graphql", body)
    assert answer.status_code == 200, answer.text
    text = json.dumps(strip(answer.json()))
    assert "graphql_validation_failed" not in text, text
    return text.replace(identity, "ID")


@pytest.mark.parametrize("field", READING)
def test_a_typed_field_reads_hidden_and_absent_documents_alike(
    todos: CollectionClient, field: str
) -> None:
    hidden, absent = (answer_to(todos, "query", field, identity) for identity in (HIDDEN, ABSENT))
    assert hidden == absent
    assert '"data": {"todos' in hidden


@pytest.mark.parametrize("field", WRITING)
def test_a_typed_field_writes_hidden_and_absent_documents_alike(
    todos: CollectionClient, field: str
) -> None:
    hidden, absent = (
        answer_to(todos, "mutation", field, identity) for identity in (HIDDEN, ABSENT)
    )
    assert hidden == absent
    assert '"errors"' in hidden
    (kept,) = todos.query({"_id": HIDDEN})
    assert kept == {"_id": HIDDEN, "owner": "bob", "code": HIDDEN}
    assert not todos.query({"_id": ABSENT})
