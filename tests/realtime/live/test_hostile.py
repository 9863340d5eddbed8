"""Malicious and faulty clients do not prevent the server from serving others."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from websockets.exceptions import ConnectionClosed

from tenants.models import Quota
from tests.documents.collection import CollectionClient, make_collection
from tests.make import make_tenant
from tests.realtime.client import Client, greeted
from tests.realtime.live.answer import subscribe
from tests.realtime.live.conftest import BackgroundProcesses
from tests.realtime.live.test_resuming import key_of

#: Subscriptions that one client requests.
MANY = 10_000
ALLOWED = 100
#: Residual queries that one tenant may have, as docs/errors.md states.
RESIDUAL = 1_000
ABOVE = 50

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.backend(
        "postgres", reason="hostile requests are rejected before the backend is known"
    ),
]


def limited_collection(server: str, subscriptions: int) -> CollectionClient:
    """Create a collection of a new tenant with this quota of subscriptions."""
    account = make_tenant(plan="dedicated")
    rates = {"requests_per_s": 100_000, "requests_burst": 100_000}
    Quota(tenant=account.tenant, limits={**rates, "subscriptions": subscriptions}).save(
        using="staff"
    )
    return make_collection(server, account=account)


@pytest.fixture
def hostile(server: str, background: BackgroundProcesses) -> CollectionClient:
    return limited_collection(server, ALLOWED)


@contextmanager
def in_background(work: Callable[[], None]) -> Iterator[None]:
    """Run `work` in a thread during the block, and wait for its end."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 -- raised below, where the test sees it
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        thread.join()
    if failed:
        raise failed[0]


def assert_served(client: Client, todos: CollectionClient, *, writes: int = 20) -> None:
    """Write, and check that each write is delivered as an event."""
    answer = subscribe(client, "calm", collection=todos.name)
    for number in range(writes):
        todos.caller.put(f"{todos.path}/documents/a", {"n": number})
        answer.until_shows([{"_id": "a", "n": number}])


def test_ten_thousand_requested_subscriptions_are_limited_by_the_quota(
    server: str, client: Client, todos: CollectionClient, hostile: CollectionClient
) -> None:
    codes: Counter[str] = Counter()

    def flood() -> None:
        with greeted(server, key_of(hostile), by_socket=True) as greedy:
            for number in range(MANY):
                greedy.send(
                    type="subscribe",
                    id=f"s{number}",
                    collection=hostile.name,
                    filter={"n": number},
                )
            while sum(codes.values()) < MANY:
                frame = greedy.next()
                if frame["type"] == "error":
                    codes[frame["error"]["code"]] += 1
                elif frame["type"] == "ready":
                    codes["ready"] += 1

    with in_background(flood):
        assert_served(client, todos)
    assert codes == {"ready": ALLOWED, "too_many_subscriptions": MANY - ALLOWED}


def test_garbage_gets_an_error_or_ends_only_its_own_connection(
    server: str, client: Client, todos: CollectionClient, hostile: CollectionClient
) -> None:
    rng = random.Random(5)
    alphabet = '{}[]",:\\ \t\n0123456789eE+-truefalsnullidtypesubscribecollection$é\u2028'

    def babble() -> None:
        for _ in range(5):
            with greeted(server, key_of(hostile), by_socket=True) as one:
                try:
                    for _ in range(200):
                        one.send_raw("".join(rng.choices(alphabet, k=rng.randrange(1, 300))))
                    one.send_raw("[" * 100_000)
                    one.send_raw(b"\xff\x00\xfe")
                    assert one.closed()[0] in (1003, 1007, 1008, 1009)
                except ConnectionClosed:
                    continue

    with in_background(babble):
        assert_served(client, todos)


def test_a_tenant_with_a_thousand_residual_queries_does_not_block_others(
    server: str, client: Client, todos: CollectionClient
) -> None:
    hostile = limited_collection(server, 5 * RESIDUAL)
    codes: Counter[str] = Counter()

    def ask(one: Client, numbers: range) -> None:
        for number in numbers:
            query_filter = {"n": {"$not": {"$eq": number}}}
            one.send(
                type="subscribe", id=f"s{number}", collection=hostile.name, filter=query_filter
            )
        wanted_answers = sum(codes.values()) + len(numbers)
        while sum(codes.values()) < wanted_answers:
            frame = one.next()
            if frame["type"] in ("error", "end"):
                codes[frame["error"]["code"]] += 1
            elif frame["type"] == "ready":
                codes["ready"] += 1

    def flood() -> None:
        key = key_of(hostile)
        with greeted(server, key) as first, greeted(server, key) as second:
            ask(first, range(RESIDUAL))
            ask(second, range(RESIDUAL, RESIDUAL + ABOVE))
            # Every residual query is evaluated for this write.
            hostile.insert({"n": 5})

    with in_background(flood):
        assert_served(client, todos, writes=60)
    assert codes == {"ready": RESIDUAL, "residual_quota": ABOVE}
