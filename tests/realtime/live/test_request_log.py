"""What the request log has of subscriptions."""

from __future__ import annotations

import pytest
import requests

from tenants.request_log import recorder
from tests.caller import signed_in
from tests.documents.collection import CollectionClient
from tests.realtime.client import Client
from tests.realtime.live.answer import subscribe
from tests.waiting import wait_until

pytestmark = pytest.mark.backend(
    "postgres", reason="the request log does not depend on the backend"
)


def entries(todos: CollectionClient, **filters: str) -> list[dict[str, object]]:
    """Return the log of a collection's tenant, oldest entries first."""
    recorder.flush()
    owner = signed_in(todos.caller.base, todos.account.owner)
    path = f"/api/v1/tenants/{todos.account.slug}/request-log"
    items: list[dict[str, object]] = owner.get(
        f"{path}?" + "&".join(f"{name}={value}" for name, value in filters.items())
    ).json()["items"]
    return items[::-1]


def test_an_event_stream_is_recorded_when_it_opens_and_when_it_closes(
    todos: CollectionClient,
) -> None:
    url = f"{todos.caller.base}{todos.path}/live?filter=%7B%22secret%22:1%7D"
    with requests.get(url, headers=todos.caller.headers, stream=True, timeout=60) as answer:
        assert answer.status_code == 200
        (opened,) = entries(todos, method="GET")
        assert (opened["kind"], opened["route"]) == ("opened", f"{todos.path}/live")
        assert opened["request_id"] == answer.headers["X-Request-Id"]
    wait_until(lambda: len(entries(todos, method="GET")) == 2, what="the stream to be closed")
    closed = entries(todos, method="GET")[1]
    assert (closed["kind"], closed["status"]) == ("closed", 200)
    assert closed["bytes_out"] != 0


def test_a_refused_event_stream_is_a_request(todos: CollectionClient) -> None:
    todos.caller.get(f"{todos.path}/live?ejson=strict")
    (refused,) = entries(todos, method="GET")
    assert (refused["kind"], refused["status"]) == ("request", 400)
    assert refused["code"] == "invalid_parameter"


def test_a_subscription_names_its_collection(todos: CollectionClient, client: Client) -> None:
    subscribe(client, "s", collection=todos.name)
    client.send(type="subscribe", id="t", collection=todos.name, filter={"$no": 1})
    client.answer("t")
    result = entries(todos, route="subscribe")
    assert [(entry["route"], entry["status"]) for entry in result] == [
        (f"subscribe {todos.name}", 200),
        ("subscribe", 400),
    ]
