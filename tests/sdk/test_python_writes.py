"""Writes of the Python SDK: seen before they are confirmed, kept while there is no network."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rillbase import (
    Client,
    ClientClosed,
    ConnectionLost,
    ConnectionState,
    QueueFailed,
    RillbaseError,
    ServerError,
    Snapshot,
)
from tests.sdk.conftest import options_of
from tests.sdk.proxy import Proxy
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.documents.collection import CollectionClient

pytestmark = pytest.mark.timeout(300)

Opens = Callable[..., Client]


@pytest.fixture
def opens(network: Proxy, todos: CollectionClient) -> Opens:
    """Opens clients that reach the server through the network."""
    options = options_of(network, todos)

    def open_(**more: object) -> Client:
        return Client(str(options["url"]), key=str(options["key"]), silence_s=4, **more)  # type: ignore[arg-type]

    return open_


def offline(network: Proxy) -> None:
    network.refuses = True
    network.cut()


def test_a_write_is_visible_at_once_and_reverted_if_it_is_rejected(
    opens: Opens, todos: CollectionClient, network: Proxy
) -> None:
    todos.insert({"_id": "a", "n": 1})
    seen: list[Snapshot] = []
    with opens() as db:
        things = db.collection(todos.name)
        stop = things.sort("n").on_snapshot(seen.append)
        wait_until(lambda: bool(seen) and seen[-1].state == "live", what="the answer")
        network.delay_s = 0.2
        writing = things.later.insert({"_id": "b", "n": 0})
        wait_until(lambda: seen[-1].has_pending_writes, what="the write to be seen")
        assert [(i.id, i.version, i.is_pending) for i in seen[-1].items] == [
            ("b", None, True),
            ("a", 1, False),
        ]
        assert writing.result(60).version == 1
        refusal = things.later.update("a", {"$set": {"n": -1}}, if_version=7)
        wait_until(lambda: seen[-1].documents[0]["n"] == -1, what="the write to be seen")
        with pytest.raises(ServerError) as late:
            refusal.result(60)
        assert late.value.code == "precondition_failed"
        wait_until(
            lambda: (
                seen[-1].documents == [{"_id": "b", "n": 0}, {"_id": "a", "n": 1}]
                and not seen[-1].has_pending_writes
            ),
            what="the write to be taken back",
        )
        stop()


def test_without_optimistic_writes_only_the_servers_answer_is_shown(
    opens: Opens, todos: CollectionClient, network: Proxy
) -> None:
    seen: list[Snapshot] = []
    with opens(optimistic=False) as db:
        things = db.collection(todos.name)
        things.on_snapshot(seen.append)
        wait_until(lambda: bool(seen) and seen[-1].state == "live", what="the answer")
        things.insert({"_id": "a"})
        wait_until(lambda: seen[-1].documents == [{"_id": "a"}], what="the document")
        assert not any(snapshot.has_pending_writes for snapshot in seen)


def test_offline_writes_survive_the_program_and_are_sent_in_order(
    opens: Opens, todos: CollectionClient, network: Proxy, tmp_path: Path
) -> None:
    offline(network)
    with opens(queue=tmp_path / "writes.db") as db:
        things = db.collection(todos.name)
        waiting: list[Future[Any]] = [
            things.later.insert({"_id": "a", "n": 1}),
            things.later.update("a", {"$inc": {"n": 1}}),
            things.later.update("a", {"$mul": {"n": 10}}),
            things.later.bulk(lambda steps: steps.insert({"_id": "b"}).delete("b")),
        ]
        wait_until(lambda: db.queued_writes == 4, what="the writes to be queued")
    for one in waiting:
        with pytest.raises(ClientClosed):
            one.result(60)
    assert todos.query() == []
    network.refuses = False
    with opens(queue=tmp_path / "writes.db") as db:
        wait_until(lambda: db.queued_writes == 0, what="the queue to be sent")
        assert todos.query() == [{"_id": "a", "n": 20}]
    with opens(queue=tmp_path / "writes.db") as db:
        assert db.queued_writes == 0


def test_queued_writes_happen_once_however_often_the_network_fails(
    opens: Opens, todos: CollectionClient, network: Proxy
) -> None:
    todos.insert({"_id": "a", "n": 0})
    with opens(queue=True) as db:
        network.delay_s = 0.05
        things = db.collection(todos.name)
        waiting = [things.later.update("a", {"$inc": {"n": 1}}) for _ in range(15)]
        for place in (2, 5, 8):
            waiting[place].result(60)
            network.cut()
        network.delay_s = 0.0
        assert [one.result(60).version for one in waiting] == list(range(2, 17))
    assert todos.query() == [{"_id": "a", "n": 15}]


def test_a_waiting_write_fails_when_its_client_is_closed(
    opens: Opens, todos: CollectionClient, network: Proxy
) -> None:
    offline(network)
    with opens() as db:
        waiting = db.collection(todos.name).later.insert({"_id": "a"})
    with pytest.raises((ClientClosed, ConnectionLost, CancelledError)):
        waiting.result(60)


def test_a_rejection_without_a_waiting_caller_is_reported(
    opens: Opens, todos: CollectionClient, network: Proxy, tmp_path: Path
) -> None:
    todos.insert({"_id": "a"})
    offline(network)
    with opens(queue=str(tmp_path / "writes.db")) as db:
        db.collection(todos.name).later.insert({"_id": "a"})
        wait_until(lambda: db.queued_writes == 1, what="the write to be queued")
    network.refuses = False
    refusals: list[RillbaseError] = []
    with opens(queue=str(tmp_path / "writes.db"), on_queue_error=refusals.append):
        wait_until(lambda: bool(refusals), what="the refusal")
    assert [error.code for error in refusals] == ["duplicate_id"]


def test_a_queue_belongs_to_one_program_at_a_time(opens: Opens, tmp_path: Path) -> None:
    path = tmp_path / "writes.db"
    with opens(queue=path), pytest.raises(QueueFailed):
        opens(queue=path)
    with opens(queue=path):
        assert path.stat().st_mode & 0o077 == 0


def test_the_connections_state_is_reported(
    opens: Opens, todos: CollectionClient, network: Proxy
) -> None:
    states: list[ConnectionState] = []
    with opens() as db:
        stop = db.on_state(states.append)
        db.collection(todos.name).on_snapshot(lambda _: None)
        wait_until(lambda: states == ["connecting", "open"], what="the connection")
        offline(network)
        wait_until(lambda: states[:3] == ["connecting", "open", "offline"], what="its end")
        network.refuses = False
        wait_until(lambda: states[-1] == "open", what="the next connection")
        stop()
        reported = len(states)
    assert len(states) == reported


def test_a_listener_may_write_but_not_wait(opens: Opens, todos: CollectionClient) -> None:
    raised: list[RuntimeError] = []
    ran = threading.Event()
    with opens() as db:
        things = db.collection(todos.name)

        def listen(snapshot: Snapshot) -> None:
            if snapshot.state == "live" and not snapshot.items and not ran.is_set():
                try:
                    things.insert({"_id": "a"})
                except RuntimeError as error:
                    raised.append(error)
                things.later.insert({"_id": "b"})
                ran.set()

        things.on_snapshot(listen)
        wait_until(lambda: todos.query() == [{"_id": "b"}], what="the write")
    assert "later" in str(raised[0])


def test_a_listener_that_failed_is_notified_again(
    opens: Opens, todos: CollectionClient, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[Snapshot] = []

    def listen(snapshot: Snapshot) -> None:
        seen.append(snapshot)
        raise ValueError("of the listener's own")

    with opens() as db:
        db.collection(todos.name).on_snapshot(listen)
        wait_until(lambda: bool(seen) and seen[-1].state == "live", what="the answer")
        todos.insert({"_id": "a"})
        wait_until(lambda: seen[-1].documents == [{"_id": "a"}], what="the change")
    assert "of the listener's own" in caplog.text


def test_a_rejected_subscription_reports_the_reason_to_its_listener(
    opens: Opens, todos: CollectionClient, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[Snapshot] = []
    with opens() as db:
        db.collection(todos.name).filter({"n": {"$foo": 1}}).on_snapshot(seen.append)
        wait_until(lambda: bool(seen) and seen[-1].state == "failed", what="the refusal")
    assert "A subscription failed (unsupported_operator)" in caplog.text
    assert isinstance(seen[-1].error, ServerError)
