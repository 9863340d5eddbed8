"""What clients are told while something behind the server is down, and afterwards."""

from __future__ import annotations

from tests.documents.collection import MadeCollection
from tests.own_server import another_server
from tests.realtime.client import Client, greeted
from tests.realtime.live.answer import Answer, subscribe
from tests.realtime.live.conftest import Backstage
from tests.waiting import TIMEOUT_S, wait_until

HEALED_S = 90.0


def until_state(answer: Answer, state: str, timeout_s: float = TIMEOUT_S) -> None:
    while answer.state != state:
        answer.next(timeout_s)


def told_of(todos: MadeCollection) -> list[str]:
    """Return what stands in the error log of a collection's tenant."""
    from tenants.models import ErrorEntry

    rows = ErrorEntry.unscoped.using("relay").filter(tenant_id=todos.made.tenant.id)
    return sorted({entry.code for entry in rows})


def test_answers_are_stale_while_the_grid_is_down_and_then_corrected(
    client: Client, todos: MadeCollection, backstage: Backstage
) -> None:
    todos.insert({"_id": "a"})
    answers = [
        subscribe(client, "unsorted", collection=todos.name),
        subscribe(client, "sorted", collection=todos.name, sort=[["n", 1]], limit=10),
    ]
    backstage.kill("grid")
    for answer in answers:
        until_state(answer, "stale")
    wait_until(lambda: told_of(todos) == ["subscription_stale"], what="the error log to tell of it")
    todos.insert({"_id": "b"})
    todos.caller.delete(f"{todos.path}/documents/a")
    backstage.start("grid")
    for answer in answers:
        until_state(answer, "live", timeout_s=HEALED_S)
        answer.until_shows([{"_id": "b"}], timeout_s=HEALED_S)


def test_subscriptions_recover_from_an_emptied_event_layer(
    client: Client, todos: MadeCollection, backstage: Backstage
) -> None:
    answer = subscribe(client, "s", collection=todos.name)
    backstage.valkey.flushdb()
    todos.insert({"_id": "a"})
    answer.until_shows([{"_id": "a"}], timeout_s=HEALED_S)
    until_state(answer, "live", timeout_s=HEALED_S)
    todos.insert({"_id": "b"})
    answer.until_shows([{"_id": "a"}, {"_id": "b"}], timeout_s=HEALED_S)


def test_unreadable_entries_are_skipped(
    client: Client, todos: MadeCollection, backstage: Backstage
) -> None:
    answers = [
        subscribe(client, "unsorted", collection=todos.name),
        subscribe(client, "sorted", collection=todos.name, sort=[["n", 1]], limit=10),
    ]
    todos.insert({"_id": "a"})
    for answer in answers:
        answer.until_shows([{"_id": "a"}])
    for stream in ("0", "1", "log:0"):
        backstage.valkey.xadd(f"{{rillbase}}:events:1:1:{stream}", {"e": b"\xffwritten by nobody"})
    todos.insert({"_id": "b"})
    for answer in answers:
        answer.until_shows([{"_id": "a"}, {"_id": "b"}], timeout_s=HEALED_S)
        until_state(answer, "live", timeout_s=HEALED_S)


def test_answers_are_stale_while_the_relay_is_down(
    client: Client, todos: MadeCollection, backstage: Backstage
) -> None:
    answer = subscribe(client, "s", collection=todos.name)
    backstage.kill("relay")
    until_state(answer, "stale")
    backstage.start("relay")
    until_state(answer, "live", timeout_s=HEALED_S)
    todos.insert({"_id": "a"})
    answer.until_shows([{"_id": "a"}])


def test_a_stopping_server_sends_goodbye(todos: MadeCollection) -> None:
    key = todos.caller.headers["Authorization"].removeprefix("Bearer ")
    with another_server() as other, greeted(other.url, key) as client:
        subscribe(client, "s", collection=todos.name)
        other.process.terminate()
        assert client.wait_for(lambda f: f["type"] == "goodbye")["reconnect_in_ms"] < 5_000
        assert client.closed()[0] == 1012
