"""Large documents: they are read in parts, and large results of several callers take turns."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from documents.backend import Backend
from documents.store.bodies import ROUND_TRIP_BYTES, largest_carried, parts
from tests.caller import Caller, problem
from tests.documents.collection import CollectionClient, make_collection
from tests.own_server import another_server
from tests.peak_memory import peak_memory
from tests.waiting import wait_until

MIB = 1024 * 1024
DOCUMENTS = 160
REQUESTS, MOST_ADDED_MIB = 6, 256
RANK = [("rank", 1)]


def _document(number: int) -> dict[str, Any]:
    """A document of a megabyte with three index entries, or a short one."""
    text = "x" * (number % 4 > 0) * 1_000_000
    return {"_id": number, "n": number, "rank": [number, number + 1, -number], "text": text}


@pytest.fixture(scope="module")
def large(server: str, backend: Backend) -> CollectionClient:
    """A collection of 160 documents, three quarters of which have a megabyte."""
    collection = make_collection(server, indexes=[("rank", RANK, False)])
    for begin in range(0, DOCUMENTS, 16):
        collection.insert_many([_document(number) for number in range(begin, begin + 16)])
    return collection


@pytest.fixture(scope="module")
def elsewhere(large: CollectionClient) -> Iterator[tuple[CollectionClient, int]]:
    """The collection through a freshly started server, and that server's process."""
    with another_server() as other:
        collection = replace(large, caller=Caller(other.url, large.caller.headers))
        assert collection.ids(limit=1) == [0]
        yield collection, other.process.pid


def _fits(process: int, call: Any) -> None:
    with peak_memory(process) as memory, ThreadPoolExecutor(REQUESTS) as threads:
        for outcome in [threads.submit(call) for _ in range(REQUESTS)]:
            outcome.result()
    assert memory.added_mib < MOST_ADDED_MIB


def _until_result(collection: CollectionClient, query: object, ids: list[int]) -> None:
    """Repeat a query until it returns these documents: on a busy machine, it may take longer than
    queries may.
    """

    def has_result() -> bool:
        answer = collection.ask(query)
        if answer.status_code == 422:
            problem(answer, 422, "query_too_expensive")
            return False
        assert [item["id"] for item in answer.json()["items"]] == ids, answer.text
        return True

    wait_until(has_result, what="the result")


def test_a_round_trip_carries_small_bodies_and_parts_of_what_it_omits() -> None:
    quarter = (ROUND_TRIP_BYTES // 4).to_bytes(4, "big")
    cells = [(b"%d" % number, b"small" if number % 2 else quarter) for number in range(12)]
    cells.append((b"0", quarter))
    items = list(parts(cells))
    assert [part.omitted for part in items] == [[b"0", b"2", b"4", b"6"], [b"8", b"10", b"0"]]
    assert [cell for part in items for cell in cells[part.rows]] == cells
    assert int.from_bytes(largest_carried(1)) == ROUND_TRIP_BYTES
    assert int.from_bytes(largest_carried(1_000_000)) == 2_048


@pytest.mark.parametrize("sort", [None, [["rank", 1]], [["rank", -1]], [["n", -1]]])
def test_large_documents_are_returned_in_order_page_by_page(
    large: CollectionClient, sort: object
) -> None:
    expected = list(range(DOCUMENTS)) if sort is None else list(range(DOCUMENTS))[::-1]
    items: list[Any] = []
    cursor = None
    while True:
        answer = large.ask({"sort": sort, "limit": 50, "cursor": cursor}).json()
        items += [item["document"] for item in answer["items"]]
        assert sum(len(item["document"]["text"]) for item in answer["items"]) <= 17 * MIB
        cursor = answer.get("next_cursor")
        if cursor is None:
            break
    assert [document["_id"] for document in items] == expected
    assert all(document == _document(document["_id"]) for document in items)


def test_a_search_through_large_documents_takes_little_memory(
    elsewhere: tuple[CollectionClient, int],
) -> None:
    collection, process = elsewhere
    _fits(process, lambda: _until_result(collection, {"filter": {"missing": 1}}, []))


def test_results_of_large_documents_take_turns(elsewhere: tuple[CollectionClient, int]) -> None:
    collection, process = elsewhere
    _fits(process, lambda: collection.ids({"n": {"$gte": 0}}, limit=30))


def test_documents_before_a_page_do_not_stay_in_memory(
    elsewhere: tuple[CollectionClient, int],
) -> None:
    collection, process = elsewhere
    last = [DOCUMENTS - 2, DOCUMENTS - 1]
    _fits(process, lambda: _until_result(collection, {"offset": DOCUMENTS - 2}, last))


def test_documents_by_id_are_rejected_if_they_have_too_many_bytes(
    elsewhere: tuple[CollectionClient, int],
) -> None:
    collection, process = elsewhere
    path = f"{collection.path}/documents:get"
    answer = collection.caller.post(path, {"ids": [3, 4, 5, 999]})
    assert [item["document"] for item in answer.json()["items"]] == [
        _document(number) for number in (3, 4, 5)
    ]
    everything = {"ids": list(range(DOCUMENTS))}
    _fits(
        process,
        lambda: problem(collection.caller.post(path, everything), 422, "query_too_expensive"),
    )


def test_lookups_of_large_documents_are_complete(large: CollectionClient) -> None:
    orders = make_collection(large.caller.base, account=large.account)
    orders.insert({"_id": 1, "things": [1, 2, 4, 7]})
    lookup = [{"from": large.name, "local": "things", "as": "found"}]
    (order,) = orders.query(lookup=lookup)
    assert order["found"] == [_document(number) for number in (1, 2, 4, 7)]


def test_an_update_of_large_documents_is_split_into_transactions(
    large: CollectionClient,
) -> None:
    path = f"{large.path}/documents:bulk"
    operations = [
        {"update": {"id": number, "update": {"$set": {"seen": True}}}}
        for number in range(DOCUMENTS)
    ]
    refusal = large.caller.post(path, {"operations": operations, "ordered": True})
    problem(refusal, 422, "query_too_expensive")
    answer = large.caller.post(path, {"operations": operations, "ordered": False})
    assert answer.status_code == 200, answer.text
    assert [result["version"] for result in answer.json()["results"]] == [2] * DOCUMENTS
