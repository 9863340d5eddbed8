"""What clients receive while a process behind the server is down, and afterwards."""

from __future__ import annotations

from tests.documents.collection import CollectionClient
from tests.own_server import another_server
from tests.realtime.client import Client, greeted
from tests.realtime.live.answer import Answer, subscribe
from tests.realtime.live.conftest import BackgroundProcesses
from tests.waiting import TIMEOUT_S, wait_until

RECOVERY_S = 90.0


def until_state(answer: Answer, state: str, timeout_s: float = TIMEOUT_S) -> None:
    while answer.state != state:
        answer.next(timeout_s)


def error_codes(todos: CollectionClient) -> list[str]:
    """Return the codes in the error log of a collection's tenant."""
    from tenants.models import ErrorEntry

    rows = ErrorEntry.unscoped.using("relay").filter(tenant_id=todos.account.tenant.id)
    return sorted({entry.code for entry in rows})


def test_answers_are_stale_while_the_grid_is_down_and_then_corrected(
    client: Client, todos: CollectionClient, background: BackgroundProcesses
) -> None:
    todos.insert({"_id": "a"})
    answers = [
        subscribe(client, "unsorted", collection=todos.name),
        subscribe(client, "sorted", collection=todos.name, sort=[["n", 1]], limit=10),
    ]
    background.kill("grid")
    for answer in answers:
        until_state(answer, "stale")
    wait_until(
        lambda: error_codes(todos) == ["subscription_stale"], what="an entry in the error log"
    )
    todos.insert({"_id": "b"})
    todos.caller.delete(f"{todos.path}/documents/a")
    background.start("grid")
    for answer in answers:
        until_state(answer, "live", timeout_s=RECOVERY_S)
        answer.until_shows([{"_id": "b"}], timeout_s=RECOVERY_S)


def test_subscriptions_recover_from_an_emptied_event_layer(
    client: Client, todos: CollectionClient, background: BackgroundProcesses
) -> None:
    answer = subscribe(client, "s", collection=todos.name)
    background.valkey.flushdb()
    todos.insert({"_id": "a"})
    answer.until_shows([{"_id": "a"}], timeout_s=RECOVERY_S)
    until_state(answer, "live", timeout_s=RECOVERY_S)
    todos.insert({"_id": "b"})
    answer.until_shows([{"_id": "a"}, {"_id": "b"}], timeout_s=RECOVERY_S)


def test_unreadable_entries_are_skipped(
    client: Client, todos: CollectionClient, background: BackgroundProcesses
) -> None:
    answers = [
        subscribe(client, "unsorted", collection=todos.name),
        subscribe(client, "sorted", collection=todos.name, sort=[["n", 1]], limit=10),
    ]
    todos.insert({"_id": "a"})
    for answer in answers:
        answer.until_shows([{"_id": "a"}])
    grid = background.grid
    for stream in (*range(grid.write_partitions), "log:0"):
        name = f"{grid.prefix}:{grid.epoch}:{stream}"
        background.valkey.xadd(name, {"e": b"\xffwritten by nobody"})
    todos.insert({"_id": "b"})
    for answer in answers:
        answer.until_shows([{"_id": "a"}, {"_id": "b"}], timeout_s=RECOVERY_S)
        until_state(answer, "live", timeout_s=RECOVERY_S)


def test_answers_are_stale_while_the_relay_is_down(
    client: Client, todos: CollectionClient, background: BackgroundProcesses
) -> None:
    answer = subscribe(client, "s", collection=todos.name)
    background.kill("relay")
    until_state(answer, "stale")
    background.start("relay")
    until_state(answer, "live", timeout_s=RECOVERY_S)
    todos.insert({"_id": "a"})
    answer.until_shows([{"_id": "a"}])


def test_a_stopping_server_sends_goodbye(todos: CollectionClient) -> None:
    key = todos.caller.headers["Authorization"].removeprefix("Bearer ")
    with another_server() as other, greeted(other.url, key) as client:
        subscribe(client, "s", collection=todos.name)
        other.process.terminate()
        assert client.wait_for(lambda f: f["type"] == "goodbye")["reconnect_in_ms"] < 5_000
        assert client.closed()[0] == 1012
