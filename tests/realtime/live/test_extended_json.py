"""Pushed documents in canonical Extended JSON, which keeps every type apart."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest
import requests

from tests.documents.collection import CollectionClient
from tests.make import make_key
from tests.realtime.client import greeted, opened
from tests.realtime.live.answer import begin, subscribe

pytestmark = pytest.mark.backend(
    "postgres", reason="the form of frames does not depend on the backend"
)

#: A value of every BSON type that a document may have, in the canonical form.
TYPES: dict[str, Any] = {
    "int32": {"$numberInt": "1"},
    "int64": {"$numberLong": "1"},
    "double": {"$numberDouble": "1.0"},
    "nan": {"$numberDouble": "NaN"},
    "decimal": {"$numberDecimal": "1.10"},
    "string": "text",
    "bool": True,
    "null": None,
    "oid": {"$oid": "0123456789abcdef01234567"},
    "date": {"$date": {"$numberLong": "1500000000000"}},
    "binary": {"$binary": {"base64": "AAE=", "subType": "05"}},
    "timestamp": {"$timestamp": {"t": 1, "i": 2}},
    "regex": {"$regularExpression": {"pattern": "a", "options": "i"}},
    "code": {"$code": "f()"},
    "code with scope": {"$code": "f()", "$scope": {"n": {"$numberLong": "1"}}},
    "symbol": {"$symbol": "s"},
    "pointer": {"$dbPointer": {"$ref": "c", "$id": {"$oid": "0123456789abcdef01234567"}}},
    "undefined": {"$undefined": True},
    "min": {"$minKey": 1},
    "max": {"$maxKey": 1},
    "array": [{"$numberInt": "1"}, {"$numberLong": "1"}],
    "document": {"n": {"$numberLong": "1"}},
}
DOCUMENT = {"_id": {"$numberLong": "7"}, **TYPES}
LATER = {**DOCUMENT, "_id": {"$numberLong": "8"}}


@pytest.fixture
def key(todos: CollectionClient) -> str:
    return make_key(todos.account.tenant)


def documents(frame: dict[str, Any]) -> list[Any]:
    return [item["document"] for item in frame["items"]]


def test_a_websocket_receives_every_type_as_it_was_written(
    server: str, todos: CollectionClient, key: str
) -> None:
    todos.insert(DOCUMENT)
    with greeted(server, key, ejson="canonical") as client, greeted(server, key) as other:
        relaxed = subscribe(other, "s", collection=todos.name)
        answer = begin(client, "s", collection=todos.name)
        assert documents(answer.until("result")) == [DOCUMENT]
        answer.until("ready")
        todos.insert(LATER)
        event = answer.until("event")
        assert (event["key"], event["document"]) == (LATER["_id"], LATER)
        # Both forms of one query's events are sent at the same time.
        event = relaxed.until("event")
        assert (event["key"], event["document"]["int64"]) == (8, 1)
        answered = client.ask("query", "q", collection=todos.name, filter={"_id": 7})
        assert documents(answered) == [DOCUMENT]


def test_the_header_of_a_handshake_chooses_the_form(
    server: str, todos: CollectionClient, key: str
) -> None:
    headers = {"Authorization": f"Bearer {key}", "Rillbase-EJSON": "canonical"}
    todos.insert(DOCUMENT)
    with opened(server, headers) as client:
        assert client.next()["type"] == "welcome"
        frame = begin(client, "s", collection=todos.name).until("result")
    assert documents(frame) == [DOCUMENT]


def frames_of(answer: requests.Response) -> Any:
    assert answer.status_code == 200, answer.text
    for line in answer.iter_lines(chunk_size=1):
        if line.startswith(b"data: "):
            yield json.loads(line[6:])


@pytest.mark.parametrize("way", ["header", "parameter", "ticket"])
def test_an_event_stream_receives_every_type_as_it_was_written(
    todos: CollectionClient, way: str
) -> None:
    todos.insert(DOCUMENT)
    url, headers = f"{todos.caller.base}{todos.path}/live", dict(todos.caller.headers)
    if way == "header":
        headers["Rillbase-EJSON"] = "canonical"
    elif way == "parameter":
        url += "?ejson=canonical&filter=" + quote('{"_id":{"$gte":7}}')
    else:
        live = {"collection": todos.name, "ejson": "canonical"}
        ticket = todos.caller.post("/v1/realtime/tickets", {"live": live}).json()
        url, headers = todos.caller.base + ticket["url"], {}
    with requests.get(url, headers=headers, stream=True, timeout=60) as answer:
        frames = (frame for frame in frames_of(answer) if frame["type"] != "heartbeat")
        assert documents(next(frames)) == [DOCUMENT]
        assert next(frames)["type"] == "ready"
        todos.insert(LATER)
        assert next(frames)["document"] == LATER


def test_another_form_is_rejected(server: str, todos: CollectionClient, key: str) -> None:
    with opened(server) as client:
        client.send(type="hello", token=key, ejson="strict")
        assert client.next()["error"]["code"] == "invalid_parameter"
        assert client.closed()[0] == 1008
    url = f"{todos.caller.base}{todos.path}/live?ejson=strict"
    answer = requests.get(url, headers=todos.caller.headers, timeout=60)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_parameter")
