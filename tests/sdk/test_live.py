"""What every SDK promises, against a running server and through a bad network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.documents.collection import make_collection
from tests.own_server import another_server
from tests.sdk.conftest import options_of
from tests.sdk.driver import Program, ask, shows
from tests.sdk.proxy import Proxy, through_proxy
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.documents.collection import CollectionClient

pytestmark = pytest.mark.timeout(300)

#: Programs outside browsers are seldom behind a proxy that knows plain HTTP only.
only_javascript = pytest.mark.parametrize("client", ["javascript"], indirect=True)


def document(n: int) -> dict[str, Any]:
    return {"_id": f"d{n:02}", "n": n}


def identities(report: dict[str, Any]) -> list[str]:
    """Return the ids of the documents in a report of `follow`."""
    event = report["event"]
    return [d["_id"] for d in event["documents"]] if "documents" in event else [event["id"]]


def received_ids(client: Program) -> list[str]:
    return [identity for report in client.reports.of("f") for identity in identities(report)]


def test_a_watched_query_shows_the_answer_and_every_change(
    client: Program, todos: CollectionClient
) -> None:
    todos.insert({"_id": "a", "n": 2})
    client.send("watch", "q", collection=todos.name, sort=[["n", 1]], limit=2)
    shows(client, "q", [{"_id": "a", "n": 2}])
    todos.insert({"_id": "b", "n": 1})
    todos.insert({"_id": "c", "n": 3})
    shows(client, "q", [{"_id": "b", "n": 1}, {"_id": "a", "n": 2}])
    todos.caller.delete(f"{todos.path}/documents/b")
    shows(client, "q", [{"_id": "a", "n": 2}, {"_id": "c", "n": 3}])


def test_groups_are_queried_and_watched_and_wait_for_the_server(
    client: Program, todos: CollectionClient
) -> None:
    todos.insert_many([{"_id": f"d{n}", "n": n, "odd": n % 2 == 1} for n in range(5)])
    group = {"by": ["odd"], "measures": {"sum": {"op": "sum", "field": "n"}}}
    of = {"collection": todos.name, "group": group, "sort": [["sum", -1]]}
    rows = [{"odd": False, "sum": 6}, {"odd": True, "sum": 4}]
    assert ask(client, "fetch", "f", **of)["documents"] == rows
    client.send("watch", "q", **of)
    shows(client, "q", rows)
    body = {"_id": "d9", "n": 9, "odd": True}
    client.send("insert", "w", collection=todos.name, body=body)
    shows(client, "q", [{"odd": True, "sum": 13}, {"odd": False, "sum": 6}])


def test_lookups_work_in_queries_and_subscriptions_and_follow_changes_of_both_sides(
    client: Program, todos: CollectionClient
) -> None:
    people = make_collection(todos.caller.base, account=todos.account)
    people.insert({"_id": "ann", "age": 1})
    todos.insert({"_id": "a", "owner": "ann"})
    lookup = [{"from": people.name, "local": "owner", "as": "by"}]
    of = {"collection": todos.name, "lookup": lookup}
    shown = {"_id": "a", "owner": "ann", "by": {"_id": "ann", "age": 1}}
    assert ask(client, "fetch", "f", **of)["documents"] == [shown]
    client.send("watch", "q", **of)
    shows(client, "q", [shown])
    people.caller.patch(f"{people.path}/documents/ann", {"$set": {"age": 2}})
    shows(client, "q", [{**shown, "by": {"_id": "ann", "age": 2}}])
    client.send("insert", "w", collection=todos.name, body={"_id": "b", "owner": "bob"})
    shows(
        client,
        "q",
        [{**shown, "by": {"_id": "ann", "age": 2}}, {"_id": "b", "owner": "bob", "by": None}],
    )


def test_network_outages_lose_and_repeat_no_event(
    client: Program, todos: CollectionClient, network: Proxy
) -> None:
    client.send("watch", "q", collection=todos.name)
    client.send("follow", "f", collection=todos.name)
    shows(client, "q", [])
    client.reports.wait_for("f", lambda r: r["event"]["type"] == "result")
    expected = []
    for n in range(20):
        todos.insert(document(n))
        expected.append(document(n))
        if n % 4 == 1:
            network.cut()
        elif n % 4 == 3:
            shows(client, "q", expected)
    shows(client, "q", expected)
    wait_until(
        lambda: len(client.reports.of("f")) > len(expected),
        what="each document to be told of",
        timeout_s=120,
    )
    events = [report["event"] for report in client.reports.of("f")]
    assert events[0] == {"type": "result", "documents": []}
    # Writes to different documents may be delivered in a different order.
    assert sorted((e["type"], e["id"]) for e in events[1:]) == [("add", d["_id"]) for d in expected]


def test_a_connection_that_is_open_but_dead_is_replaced(
    client: Program, todos: CollectionClient, network: Proxy
) -> None:
    client.send("watch", "q", collection=todos.name)
    shows(client, "q", [])
    network.go_silent()
    todos.insert(document(1))
    shows(client, "q", [document(1)])


def test_a_half_closed_connection_is_replaced(
    client: Program, todos: CollectionClient, network: Proxy
) -> None:
    client.send("watch", "q", collection=todos.name)
    shows(client, "q", [])
    network.half_close()
    todos.insert(document(1))
    shows(client, "q", [document(1)])


def test_a_client_is_offline_without_a_network_and_reconnects(
    client: Program, todos: CollectionClient, network: Proxy
) -> None:
    client.send("watch", "q", collection=todos.name)
    shows(client, "q", [])
    network.refuses = True
    network.cut()
    client.reports.saw("q", lambda r: r["state"] == "offline")
    todos.insert(document(1))
    network.refuses = False
    shows(client, "q", [document(1)])


@only_javascript
def test_subscriptions_work_on_networks_that_block_websockets(
    client: Program, todos: CollectionClient, network: Proxy
) -> None:
    network.passes_web_sockets = False
    client.send("watch", "q", collection=todos.name, sort=[["n", 1]], limit=3)
    shows(client, "q", [])
    todos.insert(document(1))
    shows(client, "q", [document(1)])
    network.cut()
    todos.insert(document(2))
    shows(client, "q", [document(1), document(2)])


def test_a_client_resumes_after_its_server_was_killed(
    client: Program, todos: CollectionClient, server: str
) -> None:
    with another_server() as other, through_proxy(other.url) as network:
        client.send("open", "open", options=options_of(network, todos))
        client.send("watch", "q", collection=todos.name)
        client.send("follow", "f", collection=todos.name)
        todos.insert(document(1))
        shows(client, "q", [document(1)])
        network.target = server
        other.process.kill()
        todos.insert(document(2))
        shows(client, "q", [document(1), document(2)])
        wait_until(lambda: len(received_ids(client)) >= 2, what="both documents", timeout_s=120)
        assert sorted(received_ids(client)) == ["d01", "d02"]


def test_writes_are_visible_at_once_and_reverted_if_rejected(
    client: Program, todos: CollectionClient, network: Proxy
) -> None:
    client.send("watch", "q", collection=todos.name)
    shows(client, "q", [])
    network.delay_s = 0.2
    client.send("insert", "w", collection=todos.name, body={"_id": "a", "n": 1})
    seen = client.reports.saw("q", lambda r: r["pending"])
    assert seen["documents"] == [{"_id": "a", "n": 1}]
    assert client.reports.wait_for("w", lambda _: True)["version"] == 1
    network.delay_s = 0.0
    client.reports.wait_for("q", lambda r: not r["pending"])
    refusal = ask(client, "insert", "again", collection=todos.name, body={"_id": "a", "n": 2})
    assert refusal["error"]["code"] == "duplicate_id"
    shows(client, "q", [{"_id": "a", "n": 1}])


def test_a_write_whose_response_was_lost_takes_effect_once(
    client: Program, todos: CollectionClient, network: Proxy
) -> None:
    todos.insert({"_id": "a", "n": 0})
    network.delay_s = 0.3
    client.send("update", "w", collection=todos.name, id="a", body={"$inc": {"n": 1}})
    wait_until(
        lambda: todos.query() == [{"_id": "a", "n": 1}], what="the write to commit", timeout_s=120
    )
    network.cut()
    network.delay_s = 0.0
    answer = client.reports.wait_for("w", lambda _: True)
    assert answer["version"] == 2
    assert todos.query() == [{"_id": "a", "n": 1}]


def test_queued_writes_wait_for_the_network(
    client: Program, todos: CollectionClient, network: Proxy
) -> None:
    client.send("open", "open", options={**options_of(network, todos), "queued": True})
    client.send("watch", "q", collection=todos.name)
    shows(client, "q", [])
    network.refuses = True
    network.cut()
    client.reports.saw("q", lambda r: r["state"] == "offline")
    client.send("insert", "w1", collection=todos.name, body={"_id": "a", "n": 1})
    client.send("update", "w2", collection=todos.name, id="a", body={"$inc": {"n": 1}})
    client.reports.wait_for("q", lambda r: r["documents"] == [{"_id": "a", "n": 2}])
    assert todos.query() == []
    network.refuses = False
    assert client.reports.wait_for("w2", lambda _: True)["version"] == 2
    assert todos.query() == [{"_id": "a", "n": 2}]
    client.reports.wait_for("q", lambda r: r["state"] == "live" and not r["pending"])


def test_a_transaction_is_done_as_a_whole(client: Program, todos: CollectionClient) -> None:
    todos.insert_many([{"_id": "a", "n": 1}, {"_id": "b", "n": 1}])
    client.send("watch", "q", collection=todos.name)
    shows(client, "q", [{"_id": "a", "n": 1}, {"_id": "b", "n": 1}])
    ask(client, "transfer", "t", collection=todos.name, body={"from": "a", "to": "b"})
    shows(client, "q", [{"_id": "a", "n": 0}, {"_id": "b", "n": 2}])
    missing = ask(client, "transfer", "t2", collection=todos.name, body={"from": "a", "to": "x"})
    assert missing["error"]["code"] == "not_found"
    shows(client, "q", [{"_id": "a", "n": 0}, {"_id": "b", "n": 2}])


def test_errors_have_codes_and_point_at_the_place(client: Program, todos: CollectionClient) -> None:
    client.send("watch", "q", collection=todos.name, filter={"n": {"$foo": 1}})
    failed = client.reports.wait_for("q", lambda r: r["error"] is not None)
    assert failed["state"] == "failed"
    request = ask(client, "fetch", "f", collection=todos.name, filter={"n": {"$foo": 1}})
    assert request["error"]["code"] == failed["error"]["code"]
    assert request["error"]["places"][0]["pointer"].startswith("/filter")


def test_large_answers_are_fetched_page_by_page(client: Program, todos: CollectionClient) -> None:
    documents = [{"_id": f"d{n:04}"} for n in range(1_234)]
    todos.insert_many(documents)
    assert ask(client, "fetch", "f", collection=todos.name)["documents"] == documents
    assert ask(client, "count", "c", collection=todos.name)["count"] == 1_234
