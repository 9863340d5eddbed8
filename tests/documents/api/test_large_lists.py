"""Bodies with very long lists are rejected before the elements are built."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import requests

from tests.caller import Caller, problem
from tests.documents.collection import CollectionClient, make_collection
from tests.own_server import another_server
from tests.peak_memory import peak_memory

REQUESTS, CLIENTS, MOST_ADDED_MIB = 4, 16, 256


def test_the_maximum_number_of_longest_ids_fits(server: str) -> None:
    collection = make_collection(server)
    longest = ["é" * 508 + f"{number:04}" for number in range(1_000)]
    answer = collection.caller.post(f"{collection.path}/documents:get", {"ids": longest})
    assert answer.status_code == 200, answer.text
    assert answer.json() == {"items": []}


def test_lists_of_millions_of_ids_take_little_memory(server: str) -> None:
    collection = make_collection(server)
    too_large, millions = (b'{"ids":[%b1]}' % (b"1," * count) for count in (16_000_000, 1_500_000))
    with another_server() as other:
        caller = Caller(other.url, collection.caller.headers)
        assert _get(caller, collection, b'{"ids":[1]}').status_code == 200
        with peak_memory(other.process.pid) as memory, ThreadPoolExecutor(REQUESTS) as threads:
            for body, status, code in (
                (too_large, 413, "body_too_large"),
                (millions, 400, "invalid_body"),
            ):
                calls = [threads.submit(_get, caller, collection, body) for _ in range(REQUESTS)]
                for answer in calls:
                    problem(answer.result(), status, code)
    assert memory.added_mib < MOST_ADDED_MIB


def test_lists_of_millions_of_operations_take_little_memory(server: str) -> None:
    collection = make_collection(server)
    millions = b'{"operations":[%b0]}' % (b"{}," * 10_000_000)
    with another_server() as other:
        caller = Caller(other.url, collection.caller.headers)
        assert _bulk(caller, collection, b'{"operations":[{"insert":{"a":1}}]}').status_code == 200
        with peak_memory(other.process.pid) as memory, ThreadPoolExecutor(REQUESTS) as threads:
            calls = [threads.submit(_bulk, caller, collection, millions) for _ in range(REQUESTS)]
            for answer in calls:
                problem(answer.result(), 400, "invalid_body")
    assert memory.added_mib < MOST_ADDED_MIB


def test_large_bodies_of_many_clients_take_little_memory(server: str) -> None:
    collection = make_collection(server)
    digits = b'{"a":[%b1]}' % (b"1," * 15_000_000)
    with another_server() as other:
        caller = Caller(other.url, collection.caller.headers)
        path = f"{collection.path}/documents"
        assert caller.call("POST", path, None, raw=b"{}").status_code == 201
        with peak_memory(other.process.pid) as memory, ThreadPoolExecutor(CLIENTS) as threads:
            calls = [
                threads.submit(caller.call, "POST", path, None, raw=digits) for _ in range(CLIENTS)
            ]
            for answer in calls:
                problem(answer.result(), 413, "document_too_large")
    assert memory.added_mib < MOST_ADDED_MIB


def _bulk(caller: Caller, collection: CollectionClient, body: bytes) -> requests.Response:
    return caller.call("POST", f"{collection.path}/documents:bulk", None, raw=body)


def _get(caller: Caller, collection: CollectionClient, body: bytes) -> requests.Response:
    return caller.call("POST", f"{collection.path}/documents:get", None, raw=body)
