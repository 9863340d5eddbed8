"""The text of a rejected call, which is what a traceback or a log shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from rillbase import Client, ServerError
from tests.documents.collection import make_collection
from tests.sdk.conftest import options_of
from tests.sdk.proxy import Proxy

if TYPE_CHECKING:
    from tests.documents.collection import CollectionClient

pytestmark = pytest.mark.timeout(300)

SCHEMA = {"required": ["name"], "properties": {"price": {"type": "number"}}}


@pytest.fixture
def products(server: str) -> CollectionClient:
    return make_collection(server, schema=SCHEMA)


@pytest.fixture
def db(network: Proxy, products: CollectionClient) -> Iterator[Client]:
    options = options_of(network, products)
    with Client(str(options["url"]), key=str(options["key"])) as db:
        yield db


def test_a_rejected_document_names_each_field_with_its_reason(
    db: Client, products: CollectionClient
) -> None:
    with pytest.raises(ServerError) as rejected:
        db.collection(products.name).insert({"price": "abc"})
    summary, *fields = str(rejected.value).splitlines()
    assert summary == (
        "The document is not accepted: the document violates the collection's schema"
    )
    assert [line.split(": ")[0] for line in fields] == ["  /name", "  /price"]
    assert all(line.split(": ", 1)[1] for line in fields)


def test_a_single_field_is_on_the_line_of_the_title(db: Client, products: CollectionClient) -> None:
    with pytest.raises(ServerError) as rejected:
        db.collection(products.name).filter({"n": {"$foo": 1}}).fetch()
    text = str(rejected.value)
    assert "\n" not in text
    assert f": {rejected.value.places[0].pointer}: " in text
    assert text.count(rejected.value.places[0].detail) == 1


def test_an_error_without_fields_has_its_title_and_detail() -> None:
    problem = {"title": "The name is in use", "detail": "There is a collection 'a'."}
    assert str(ServerError(problem, 409)) == "The name is in use: There is a collection 'a'."
    assert str(ServerError({}, 502)) == "The server responded with status 502."


def test_a_long_list_of_fields_is_cut_off() -> None:
    places = [{"pointer": f"/{number}", "detail": "is required"} for number in range(30)]
    lines = str(ServerError({"title": "Rejected", "errors": places}, 400)).splitlines()
    assert lines[:2] == ["Rejected", "  /0: is required"]
    assert (len(lines), lines[-1]) == (12, "  and 20 more")
