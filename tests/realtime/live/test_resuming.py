"""Coming back, options, and what the control plane sees."""

from __future__ import annotations

import json
from collections.abc import Iterator

import requests

from tenants.models import Quota
from tests.caller import with_key
from tests.documents.collection import CollectionClient
from tests.own_server import another_server
from tests.realtime.client import Client, greeted
from tests.realtime.live.answer import Answer, begin, subscribe
from tests.waiting import wait_until


def key_of(todos: CollectionClient) -> str:
    return todos.caller.headers["Authorization"].removeprefix("Bearer ")


def test_a_reconnected_client_gets_missed_changes(server: str, todos: CollectionClient) -> None:
    query = {"collection": todos.name, "filter": {"n": {"$gte": 0}}}
    with greeted(server, key_of(todos)) as client:
        answer = subscribe(client, "s", **query)
        todos.insert({"_id": "a", "n": 1})
        answer.until_shows([{"_id": "a", "n": 1}])
    todos.insert({"_id": "b", "n": 2})
    todos.caller.delete(f"{todos.path}/documents/a")
    with greeted(server, key_of(todos)) as client:
        back = Answer(client=client, name="s", items=answer.items, seq=answer.seq)
        client.send(type="subscribe", id="s", resume=answer.resume, **query)
        back.until_shows([{"_id": "b", "n": 2}])
        assert [frame["type"] for frame in back.frames if frame["type"] != "ready"] == [
            "event",
            "event",
        ]


def test_a_client_resumes_at_another_server(server: str, todos: CollectionClient) -> None:
    query = {"collection": todos.name}
    with another_server() as other:
        with greeted(other.url, key_of(todos)) as client:
            answer = subscribe(client, "s", **query)
            todos.insert({"_id": "a"})
            answer.until_shows([{"_id": "a"}])
        todos.insert({"_id": "b"})
        with greeted(server, key_of(todos)) as client:
            back = Answer(client=client, name="s", items=answer.items, seq=answer.seq)
            client.send(type="subscribe", id="s", resume=answer.resume, **query)
            back.until_shows([{"_id": "a"}, {"_id": "b"}])
            todos.insert({"_id": "c"})
            back.until_shows([{"_id": "a"}, {"_id": "b"}, {"_id": "c"}])
            assert all(frame["type"] in ("ready", "event") for frame in back.frames)


def test_another_users_token_starts_over(server: str, todos: CollectionClient) -> None:
    query = {"collection": todos.name}
    with greeted(server, key_of(todos)) as client:
        answer = subscribe(client, "s", **query)
    with greeted(server, todos.account.admin_key) as client:
        back = begin(client, "s", resume=answer.resume, **query)
        assert back.next()["type"] == "reset"
        back.until("ready")
    other = "11" if answer.resume.startswith("00") else "00"
    with greeted(server, key_of(todos)) as client:
        back = begin(client, "s", resume=other + answer.resume[2:], **query)
        assert back.next()["type"] == "reset"


def test_whole_results_instead_of_events(client: Client, todos: CollectionClient) -> None:
    answer = subscribe(client, "s", collection=todos.name, options={"deliver": "result"})
    todos.insert({"_id": "a"})
    answer.until_shows([{"_id": "a"}])
    assert answer.events == []


def test_only_requested_kinds_of_change_are_sent(client: Client, todos: CollectionClient) -> None:
    answer = subscribe(client, "s", collection=todos.name, options={"events": ["remove"]})
    todos.insert({"_id": "a"})
    todos.caller.delete(f"{todos.path}/documents/a")
    answer.items = [{"id": "a", "version": 1}]
    assert answer.until("event")["match"] == "remove"


def test_a_projection_selects_fields_of_a_live_query(
    client: Client, todos: CollectionClient
) -> None:
    answer = subscribe(client, "s", collection=todos.name, projection={"n": 1})
    todos.insert({"_id": "a", "n": 1, "text": "long"})
    answer.until_shows([{"_id": "a", "n": 1}])


def test_an_atomic_batch_is_one_group(client: Client, todos: CollectionClient) -> None:
    answer = subscribe(client, "s", collection=todos.name)
    todos.insert_many([{"_id": f"d{n}"} for n in range(10)])
    answer.until_shows([{"_id": f"d{n}"} for n in range(10)])
    assert [event["txn"]["index"] for event in answer.events] == list(range(10))
    assert len({event["txn"]["id"] for event in answer.events}) == 1
    assert [("resume" in event) for event in answer.events] == [False] * 9 + [True]


def test_members_see_subscriptions_and_end_them(client: Client, todos: CollectionClient) -> None:
    answer = subscribe(client, "s", collection=todos.name, filter={"n": 1})
    members = with_key(todos.caller.base, todos.account.admin_key)
    path = f"/api/v1/tenants/{todos.account.slug}/subscriptions"

    def states() -> list[str]:
        return [listed["state"] for listed in members.get(path).json()["items"]]

    # The list is written at intervals, so it can trail the client's `ready`.
    wait_until(lambda: states() == ["live"], what="the list to show the subscription live")
    (listed,) = members.get(path).json()["items"]
    assert (listed["collection"], listed["query"]) == (todos.name, {"filter": {"n": 1}})
    assert members.delete(f"{path}/{listed['id']}").status_code == 204
    assert answer.until("end")["error"]["code"] == "subscription_ended"


def events_of(
    answer: requests.Response, token: str = ""
) -> Iterator[tuple[str, str, dict[str, object]]]:
    """Yield each event's name, its resume token and its data, without the heartbeats.

    On a busy machine, a heartbeat can precede the first result.
    """
    name = ""
    for line in answer.iter_lines(chunk_size=1):
        field, _, value = line.decode().partition(": ")
        if field == "event":
            name = value
        elif field == "id":
            token = value
        elif field == "data" and name != "heartbeat":
            yield name, token, json.loads(value)


def test_a_live_query_over_server_sent_events(todos: CollectionClient, client: Client) -> None:
    url = f"{todos.caller.base}{todos.path}/live?filter=%7B%22n%22:1%7D"
    with requests.get(url, headers=todos.caller.headers, stream=True, timeout=60) as answer:
        assert answer.headers["Content-Type"] == "text/event-stream"
        events = events_of(answer)
        assert next(events)[0] == "result"
        assert next(events)[0] == "ready"
        todos.insert({"_id": "a", "n": 1})
        name, token, frame = next(events)
        assert (name, frame["key"], frame["resume"]) == ("event", "a", token)
    todos.insert({"_id": "b", "n": 1})
    headers = {**todos.caller.headers, "Last-Event-ID": token}
    with requests.get(url, headers=headers, stream=True, timeout=60) as answer:
        events = events_of(answer)
        assert "b" in [next(events)[2].get("key") for _ in range(2)]


def test_a_reset_clears_the_position_of_an_event_source(
    todos: CollectionClient, client: Client
) -> None:
    url, old = f"{todos.caller.base}{todos.path}/live", "of-another-time"
    headers = {**todos.caller.headers, "Last-Event-ID": old}
    with requests.get(url, headers=headers, stream=True, timeout=60) as answer:
        events = events_of(answer, old)
        assert next(events)[:2] == ("reset", "")
        name, token, frame = next(events)
        assert (name, token) == ("result", frame["resume"])


def test_an_event_source_subscribes_with_a_ticket(todos: CollectionClient, client: Client) -> None:
    todos.insert({"_id": "a", "n": 1})
    body = {"live": {"collection": todos.name, "filter": {"n": 1}}}
    url = todos.caller.post("/v1/realtime/tickets", body).json()["url"]
    for _ in range(2):
        with requests.get(todos.caller.base + url, stream=True, timeout=60) as answer:
            name, _, frame = next(events_of(answer))
            assert name == "result"
            assert frame["items"][0]["id"] == "a"  # type: ignore[index]


def test_a_quota_applies_across_all_servers(server: str, todos: CollectionClient) -> None:
    limits = {"subscriptions": 2}
    Quota(tenant=todos.account.tenant, limits=limits).save(using="staff")
    query = {"collection": todos.name}
    with (
        another_server() as other,
        greeted(server, key_of(todos)) as here,
        greeted(other.url, key_of(todos)) as there,
    ):
        subscribe(here, "a", **query)
        subscribe(there, "b", **query)
        refusal = there.ask("subscribe", "c", **query)
        assert refusal["error"]["code"] == "too_many_subscriptions"
        here.ask("unsubscribe", "a")
        wait_until(lambda: _is_let_in(there, "c", query), what="room for another one")


def _is_let_in(client: Client, name: str, query: dict[str, str]) -> bool:
    client.send(type="subscribe", id=name, **query)
    return bool(client.wait_for(lambda f: f.get("id") == name, timeout_s=30.0)["type"] == "result")
