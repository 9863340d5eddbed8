"""The pointer of an error denotes a place in the body that was sent, whether the operation could
not be parsed or not be applied.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.documents.collection import CollectionClient, make_collection

#: Updates that cannot be parsed, and some that cannot be applied to the document, with the pointers
#: of their errors.
UPDATES = [
    ({"$unknown": {"c": 1}}, "/$unknown"),
    ({"$inc": {"c": "x"}}, "/$inc/c"),
    ({"$inc": {"c": 1}}, "/$inc/c"),
    ({"$inc": {"inner.c": 1}}, "/$inc/inner.c"),
    ({"$inc": {"a/b~c": 1}}, "/$inc/a~1b~0c"),
    ({"$pull": {"c": 1}}, "/$pull/c"),
    ({"$push": {"c": {"$each": [1]}}}, "/$push/c"),
    ({"$addToSet": {"c": 1}}, "/$addToSet/c"),
]
DOCUMENT = {"_id": "s", "c": "text", "inner": {"c": "text"}, "a/b~c": "text"}


@dataclass(frozen=True)
class UpdatePlace:
    """A call that takes an update, and where it is in the body."""

    method: str
    path: str
    pointer: str
    body: Callable[[str, object], Any]

    def errors(self, goods: CollectionClient, update: object) -> tuple[Any, list[Any]]:
        """Return the body, and the errors of the call or of its operations."""
        body = self.body(goods.name, update)
        path = self.path.format(goods.path)
        answer = goods.caller.call(self.method, path, body).json()
        operations = answer.get("results", [answer])
        return body, [error for one in operations for error in problems(one)]


def problems(answer: dict[str, Any]) -> list[Any]:
    listed: list[Any] = answer.get("error", answer).get("errors", [])
    return listed


def change(update: object) -> dict[str, object]:
    return {"update": {"id": "s", "update": update}}


PLACES = {
    "one document": UpdatePlace("PATCH", "{}/documents/s", "", lambda _, update: update),
    "by filter": UpdatePlace(
        "POST",
        "{}/documents:update",
        "/update",
        lambda _, update: {"filter": {"_id": "s"}, "update": update},
    ),
    "bulk of one": UpdatePlace(
        "POST",
        "{}/documents:bulk",
        "/operations/0/update/update",
        lambda _, update: {"operations": [change(update)]},
    ),
    "bulk": UpdatePlace(
        "POST",
        "{}/documents:bulk",
        "/operations/1/update/update",
        lambda _, update: {"operations": [{"insert": {}}, change(update)]},
    ),
    "unordered bulk": UpdatePlace(
        "POST",
        "{}/documents:bulk",
        "/operations/1/update/update",
        lambda _, update: {"ordered": False, "operations": [{"insert": {}}, change(update)]},
    ),
    "transaction of one": UpdatePlace(
        "POST",
        "/v1/transactions",
        "/operations/0/update/update",
        lambda name, update: {"operations": [{"collection": name, **change(update)}]},
    ),
    "transaction": UpdatePlace(
        "POST",
        "/v1/transactions",
        "/operations/1/update/update",
        lambda name, update: {
            "operations": [
                {"collection": name, "insert": {}},
                {"collection": name, **change(update)},
            ]
        },
    ),
}


@pytest.fixture
def goods(server: str) -> CollectionClient:
    made = make_collection(server)
    made.insert(DOCUMENT)
    return made


def at(body: Any, pointer: str) -> Any:
    """Return the part of a body that a pointer denotes."""
    for segment in pointer.split("/")[1:]:
        name = segment.replace("~1", "/").replace("~0", "~")
        body = body[int(name)] if isinstance(body, list) else body[name]
    return body


@pytest.mark.parametrize("place", PLACES)
def test_errors_of_an_update_are_located_in_the_body(goods: CollectionClient, place: str) -> None:
    for update, pointer in UPDATES:
        body, errors = PLACES[place].errors(goods, update)
        assert [error["pointer"] for error in errors] == [PLACES[place].pointer + pointer], update
        assert at(body, errors[0]["pointer"]) == at(update, pointer)


@pytest.mark.parametrize("kind", ["insert", "replace"])
def test_errors_of_a_document_are_located_in_the_body(
    server: str, goods: CollectionClient, kind: str
) -> None:
    checked = make_collection(server, schema={"properties": {"n": {"type": "string"}}})
    document = {"n": 7}
    argument = document if kind == "insert" else {"id": "s", "document": document}
    place = "/operations/0/insert" if kind == "insert" else "/operations/0/replace/document"
    for body in ({"operations": [{kind: argument}]}, {"operations": [{kind: argument}] * 2}):
        answer = checked.caller.post(f"{checked.path}/documents:bulk", body)
        (error,) = answer.json()["errors"]
        assert error["pointer"] == f"{place}/n"
        assert at(body, error["pointer"]) == 7


def test_array_filters_are_located_beside_the_update(goods: CollectionClient) -> None:
    update, filters = {"$set": {"c.$[one]": 1}}, [{"other": 1}]
    argument = {"id": "s", "update": update, "array_filters": filters}
    by_filter = {"filter": {}, "update": update, "array_filters": filters}
    for path, body in (
        ("documents:bulk", {"operations": [{"update": argument}]}),
        ("documents:update", by_filter),
    ):
        answer = goods.caller.post(f"{goods.path}/{path}", body)
        (error,) = answer.json()["errors"]
        at(json.loads(json.dumps(body)), error["pointer"])


def test_each_error_of_an_unordered_bulk_names_its_operation(goods: CollectionClient) -> None:
    """Errors without a place in the operation denote the operation."""
    operations = [{"insert": {"_id": "s"}}, change({"$inc": {"c": 1}}), {"delete": {"id": "none"}}]
    body = {"ordered": False, "operations": operations}
    answer = goods.caller.post(f"{goods.path}/documents:bulk", body)
    pointers = [problems(one)[0]["pointer"] for one in answer.json()["results"]]
    assert pointers == ["/operations/0", "/operations/1/update/update/$inc/c", "/operations/2"]
