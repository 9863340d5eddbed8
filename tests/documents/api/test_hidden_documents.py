"""Documents that an end user may not read do not exist for it: responses for hidden and for missing
ids are equal.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
import requests

from tests.caller import Caller, problem, with_key
from tests.documents.api.test_access_rules import AUDIENCE, ISSUER, RULES, SECRET, user
from tests.documents.api.test_access_rules import todos as ruled
from tests.documents.collection import CollectionClient, make_collection
from tests.realtime.client import opened
from tests.realtime.live.test_resuming import events_of

__all__ = ["ruled"]

#: Ids of equal length, so that responses that contain them can be compared.
HIDDEN, ABSENT = "hidden-1", "absent-1"
#: Values that differ between subscriptions.
CHANGING = ("id", "resume")
ATTEMPTS = 5
Call = Callable[[CollectionClient, Caller, str], Any]


@pytest.fixture
def todos(ruled: CollectionClient) -> CollectionClient:
    ruled.insert({"_id": HIDDEN, "owner": "bob", "email": "bob@example.com"})
    ruled.caller.put(f"{ruled.path}/documents/{HIDDEN}", {"owner": "bob", "v": 2})
    # In one transaction, so that their times are equal.
    ruled.insert_many([{"_id": f"to {i}", "owner": "ada", "ref": i} for i in (HIDDEN, ABSENT)])
    return ruled


def shown(answer: Any, identity: str) -> str:
    """Return a response without the ids of the request and of the document."""
    body = json.loads(answer.content or b"null")
    headers = {
        name: value
        for name, value in answer.headers.items()
        if name.lower() in ("etag", "location", "content-type", "content-length", "retry-after")
    }
    text = json.dumps([answer.status_code, headers, strip(body)])
    return text.replace(identity, "ID")


def strip(body: Any) -> Any:
    if isinstance(body, dict):
        return {name: strip(value) for name, value in body.items() if name != "request_id"}
    return [strip(value) for value in body] if isinstance(body, list) else body


def on_document(method: str, body: object = None, query: str = "", **headers: str) -> Call:
    def ask(todos: CollectionClient, caller: Caller, identity: str) -> Any:
        path = f"{todos.path}/documents/{identity}{query}"
        return caller.call(method, path, body, raw=None, **headers)

    return ask


def in_bulk(*operations: Callable[[str], dict[str, Any]], ordered: bool) -> Call:
    def ask(todos: CollectionClient, caller: Caller, identity: str) -> Any:
        body = {"operations": [make(identity) for make in operations], "ordered": ordered}
        return caller.post(f"{todos.path}/documents:bulk", body)

    return ask


def transaction(operation: Callable[[str], dict[str, Any]], **more: object) -> Call:
    def ask(todos: CollectionClient, caller: Caller, identity: str) -> Any:
        first = {"collection": todos.name, "update": {"id": "ada's", "update": {"$set": {"t": 1}}}}
        request = {"collection": todos.name, **operation(identity), **more}
        return caller.post("/v1/transactions", {"operations": [first, request]})

    return ask


def to_collection(call: str, body: Callable[[str], object]) -> Call:
    def ask(todos: CollectionClient, caller: Caller, identity: str) -> Any:
        return caller.post(f"{todos.path}/{call}", body(identity))

    return ask


def graphql(query: str) -> Call:
    def ask(todos: CollectionClient, caller: Caller, identity: str) -> Any:
        packed = base64.urlsafe_b64encode(json.dumps([todos.name, identity]).encode())
        given = {"c": todos.name, "k": identity, "id": packed.decode().rstrip("=")}
        declared = {"c": "String!", "k": "JSON!", "id": "ID!"}
        used = {name: kind for name, kind in declared.items() if f"${name}" in query}
        heading = ", ".join(f"${name}: {kind}" for name, kind in used.items())
        variables = {name: given[name] for name in used}
        return caller.post(
            "/graphql", {"query": f"query ({heading}) {query}", "variables": variables}
        )

    return ask


def lookup(todos: CollectionClient, caller: Caller, identity: str) -> Any:
    lookup = [{"from": todos.name, "local": "ref", "as": "found"}]
    answer = caller.post(
        f"{todos.path}/query", {"filter": {"_id": f"to {identity}"}, "lookup": lookup}
    )
    assert len(answer.json()["items"]) == 1, answer.text
    return answer


def own_update_of(identity: str) -> dict[str, Any]:
    return {"update": {"id": f"to {identity}", "update": {"$unset": {"none": 1}}}}


def update_of(identity: str) -> dict[str, Any]:
    return {"update": {"id": identity, "update": {"$set": {"x": 1}}}}


def upsert_of(identity: str) -> dict[str, Any]:
    return {"update": {"id": identity, "update": {"$set": {"owner": "bob"}}, "upsert": True}}


def replace_of(identity: str) -> dict[str, Any]:
    return {"replace": {"id": identity, "document": {"owner": "bob"}}}


def strict_replace_of(identity: str) -> dict[str, Any]:
    return {"replace": {"id": identity, "document": {"owner": "ada"}, "upsert": False}}


def insert_of(identity: str) -> dict[str, Any]:
    return {"insert": {"_id": identity, "owner": "bob"}}


def delete_of(identity: str) -> dict[str, Any]:
    return {"delete": {"id": identity}}


MERGE = "application/merge-patch+json"
OTHERS = {"owner": "bob"}
EQUAL: dict[str, Call] = {
    "get": on_document("GET"),
    "get if none match": on_document("GET", If_None_Match='"v1"'),
    "get if none match any": on_document("GET", If_None_Match="*"),
    "put of another's": on_document("PUT", OTHERS),
    "put if match": on_document("PUT", {"owner": "ada"}, If_Match='"v2"'),
    "put if match any": on_document("PUT", {"owner": "ada"}, If_Match="*"),
    "put of another's if none match": on_document("PUT", OTHERS, If_None_Match="*"),
    "put of another's if other version": on_document("PUT", OTHERS, If_None_Match='"v2"'),
    "patch": on_document("PATCH", {"$set": {"x": 1}}),
    "patch if match": on_document("PATCH", {"$set": {"x": 1}}, If_Match='"v2"'),
    "patch if none match": on_document("PATCH", {"$set": {"x": 1}}, If_None_Match="*"),
    "patch that fails": on_document("PATCH", {"$inc": {"owner": 1}}),
    "upsert of another's": on_document("PATCH", {"$set": {"owner": "bob"}}, "?upsert=true"),
    "upsert that would fail": on_document("PATCH", {"$inc": {"email": 1}}, "?upsert=true"),
    "merge": on_document("PATCH", {"x": 1}, Content_Type=MERGE),
    "merge of another's": on_document("PATCH", OTHERS, "?upsert=true", Content_Type=MERGE),
    "delete": on_document("DELETE"),
    "delete if match": on_document("DELETE", If_Match='"v2"'),
    "delete if match any": on_document("DELETE", If_Match="*"),
    "bulk": in_bulk(update_of, delete_of, insert_of, replace_of, upsert_of, ordered=False),
    "bulk that is ordered": in_bulk(delete_of, insert_of, ordered=True),
    "bulk of an insert": in_bulk(insert_of, ordered=True),
    "strict replace": in_bulk(strict_replace_of, ordered=True),
    "transaction": transaction(update_of),
    "transaction of a delete": transaction(delete_of),
    "transaction at a version": transaction(delete_of, if_version=2),
    "transaction of an insert": transaction(insert_of),
    "transaction of a replace": transaction(replace_of, if_version=2),
    "bulk of mixed ids": in_bulk(own_update_of, update_of, delete_of, ordered=False),
    "node": graphql("{ node(id: $id) { id } }"),
    "nodes": graphql("{ nodes(ids: [$id]) { id } }"),
    "lookup": lookup,
    "count of several": to_collection("count", lambda i: {"filter": {"_id": {"$in": [i, "open"]}}}),
    "groups": to_collection(
        "query",
        lambda i: {
            "filter": {"_id": i},
            "group": {"by": ["owner"], "measures": {"n": {"op": "count"}}},
        },
    ),
    "last page": to_collection(
        "query", lambda i: {"filter": {"_id": {"$in": [f"to {i}", i]}}, "limit": 1}
    ),
    "get many": to_collection("documents:get", lambda i: {"ids": [i, "ada's"]}),
    "query": to_collection("query", lambda i: {"filter": {"_id": i}}),
    "count": to_collection("count", lambda i: {"filter": {"_id": i}}),
    "update by filter": to_collection(
        "documents:update", lambda i: {"filter": {"_id": i}, "update": {"$set": {"x": 1}}}
    ),
    "delete by filter": to_collection("documents:delete", lambda i: {"filter": {"_id": i}}),
    "insert of another's": to_collection("documents", lambda i: {"_id": i, "owner": "bob"}),
}


@pytest.mark.parametrize("name", EQUAL)
def test_responses_for_hidden_and_absent_documents_are_equal(
    todos: CollectionClient, name: str
) -> None:
    ada = user(todos)
    graphql = EQUAL[name]
    hidden, absent = (shown(graphql(todos, ada, i), i) for i in (HIDDEN, ABSENT))
    assert hidden == absent
    (kept,) = todos.query({"_id": HIDDEN})
    assert kept == {"_id": HIDDEN, "owner": "bob", "v": 2}
    assert not todos.query({"_id": ABSENT})


def test_cursors_skip_hidden_documents_like_absent_ones(
    todos: CollectionClient,
) -> None:
    ada = user(todos)
    seen = []
    for identity in (HIDDEN, ABSENT):
        body: dict[str, Any] = {"filter": {"_id": {"$in": ["ada's", identity, "open", "locked"]}}}
        pages = []
        while True:
            page = ada.post(f"{todos.path}/query", {**body, "limit": 1}).json()
            cursor = page.pop("next_cursor")
            pages.append((strip(page), None if cursor is None else len(cursor)))
            if cursor is None:
                break
            body["cursor"] = cursor
        seen.append(json.dumps(pages).replace(identity, "ID"))
    assert seen[0] == seen[1]
    assert seen[0].count('"document"') == 3


@pytest.mark.backend("postgres", reason="native collections have no live queries yet")
def test_tickets_and_their_streams_do_not_distinguish_hidden_documents(
    todos: CollectionClient,
) -> None:
    ada = user(todos)
    # The length of a resume token also depends on the transactions that run at the same time.
    identities = (HIDDEN, ABSENT)
    attempts = (
        {_first_event(todos, ada, identity) for identity in identities} for _ in range(ATTEMPTS)
    )
    (shown,) = next((events for events in attempts if len(events) == 1), {"different each time"})
    assert '"items": []' in shown


def _first_event(todos: CollectionClient, ada: Caller, identity: str) -> str:
    live = {"collection": todos.name, "filter": {"_id": identity}}
    ticket = ada.post("/v1/realtime/tickets", {"live": live})
    assert ticket.status_code == 201, ticket.text
    created = ticket.json()
    with requests.get(ada.base + created["url"], stream=True, timeout=60) as answer:
        name, token, frame = next(events_of(answer))
    shown = {k: len(str(v)) if k in CHANGING else v for k, v in frame.items()}
    lengths = {k: len(str(v)) for k, v in created.items()}
    return json.dumps([lengths, name, len(token), shown]).replace(identity, "ID")


@pytest.mark.parametrize(
    "write",
    [
        lambda owner: on_document("PUT", {"owner": owner}),
        lambda owner: on_document("PUT", {"owner": owner}, If_None_Match="*"),
        lambda owner: on_document("PATCH", {"$set": {"owner": owner}}, "?upsert=true"),
        lambda owner: to_collection("documents", lambda i: {"_id": i, "owner": owner}),
        lambda owner: in_bulk(lambda i: {"insert": {"_id": i, "owner": owner}}, ordered=True),
    ],
)
def test_a_taken_hidden_id_is_rejected_like_a_violated_create_rule(
    todos: CollectionClient, write: Callable[[str], Call]
) -> None:
    ada = user(todos)
    taken = write("ada")(todos, ada, HIDDEN)
    problem(taken, 403, "forbidden")
    assert shown(taken, HIDDEN) == shown(write("bob")(todos, ada, ABSENT), ABSENT)
    assert todos.query({"_id": HIDDEN})[0]["owner"] == "bob"
    readable = to_collection("documents", lambda i: {"_id": i, "owner": "ada"})
    problem(readable(todos, ada, "open"), 409, "duplicate_id")


def test_only_readers_of_a_document_learn_its_unique_value(server: str) -> None:
    people = make_collection(server, rules=RULES, indexes=[("email", [("email", 1)], True)])
    issuer = {
        "name": "login",
        "issuer": ISSUER,
        "audience": AUDIENCE,
        "algorithms": ["HS256"],
        "secret": SECRET,
    }
    account = people.account
    path = f"/api/v1/tenants/{account.slug}/issuers"
    assert with_key(server, account.admin_key).post(path, issuer).status_code == 201
    people.insert({"owner": "bob", "email": "b@x"})
    people.insert({"owner": "bob", "email": "p@x", "public": True})
    ada, documents = user(people), f"{people.path}/documents"
    taken = ada.post(documents, {"owner": "ada", "email": "b@x"})
    refusal = ada.post(documents, {"owner": "bob", "email": "c@x"})
    problem(taken, 403, "forbidden")
    assert shown(taken, "") == shown(refusal, "")
    problem(ada.post(documents, {"owner": "ada", "email": "p@x"}), 409, "duplicate_key")
    assert ada.post(documents, {"_id": "mine", "owner": "ada", "email": "m@x"}).status_code == 201
    taken = ada.patch(f"{documents}/mine", {"$set": {"email": "b@x"}})
    refusal = ada.patch(f"{documents}/mine", {"$set": {"owner": "bob"}})
    problem(taken, 403, "forbidden")
    assert shown(taken, "") == shown(refusal, "")
    problem(people.caller.post(documents, {"email": "b@x"}), 409, "duplicate_key")


#: Messages of a connection, by type.
MESSAGES: list[tuple[str, dict[str, Any]]] = [
    ("update", {"update": {"$set": {"x": 1}}}),
    ("update", {"update": {"$set": {"owner": "bob"}}, "upsert": True}),
    ("update", {"patch": {"x": 1}}),
    ("replace", {"document": {"owner": "bob"}}),
    ("delete", {}),
    ("delete", {"if_version": 2}),
    ("insert", {"document": {"owner": "bob"}}),
]


def test_a_connection_reveals_no_more_than_a_call(todos: CollectionClient) -> None:
    ada = user(todos)
    with opened(todos.caller.base) as client:
        token = ada.headers["Authorization"].removeprefix("Bearer ")
        client.send(type="hello", key=ada.headers["Rillbase-Key"], token=token)
        assert client.next()["type"] == "welcome"
        for number, (kind, members) in enumerate(MESSAGES):
            answers = []
            for identity in (HIDDEN, ABSENT):
                request = {"collection": todos.name, "key": identity, **members}
                if kind == "insert":
                    request = {**request, "document": {"_id": identity, "owner": "bob"}}
                    del request["key"]
                answer = client.ask(kind, f"{number}", **request)
                assert answer["type"] == "error", answer
                answers.append(json.dumps(strip(answer)).replace(identity, "ID"))
            assert answers[0] == answers[1], kind


MUTATIONS = [
    "updateDocument(collection: $c, key: $k, update: $u) { version }",
    "updateDocument(collection: $c, key: $k, update: $u, ifVersion: 2) { version }",
    "replaceDocument(collection: $c, key: $k, document: $d) { version }",
    "insertDocument(collection: $c, document: $i) { version }",
    "deleteDocument(collection: $c, key: $k)",
    "deleteDocument(collection: $c, key: $k, ifVersion: 2)",
]


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_mutation_reveals_no_more_than_a_call(todos: CollectionClient, mutation: str) -> None:
    ada, answers = user(todos), []
    for identity in (HIDDEN, ABSENT):
        declared = {"c": "String!", "k": "JSON!", "u": "JSON!", "d": "JSON!", "i": "JSON!"}
        given = {
            "c": todos.name,
            "k": identity,
            "u": {"$set": {"x": 1}},
            "d": {"owner": "bob"},
            "i": {"_id": identity, "owner": "bob"},
        }
        used = {name: kind for name, kind in declared.items() if f"${name}" in mutation}
        heading = ", ".join(f"${name}: {kind}" for name, kind in used.items())
        request = {
            "query": f"mutation ({heading}) {{ {mutation} }}",
            "variables": {name: given[name] for name in used},
        }
        answer = ada.post("/graphql", request)
        assert "errors" in answer.json(), answer.text
        answers.append(json.dumps(strip(answer.json())).replace(identity, "ID"))
    assert answers[0] == answers[1]
