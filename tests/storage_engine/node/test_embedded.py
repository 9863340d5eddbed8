"""The storage node within the process: the same commands, by calls."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rillbase_native import Node, NodeError, NodeSpeaker
from tests.waiting import wait_until

TOKEN = "the-administrators-token"
TENANT = "the-token-of-acme"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with Node(tmp_path / "node", TOKEN, durability="buffered") as opened:
        yield opened


def acme(node: Node) -> NodeSpeaker:
    """A client in a namespace."""
    node.execute("AUTH", TOKEN)
    node.execute("RB.NAMESPACE.CREATE", "acme", TENANT)
    speaker = node.speaker()
    assert speaker.execute("AUTH", "acme", TENANT) == b"OK"
    return speaker


def member(reply: object, name: bytes) -> Any:
    assert isinstance(reply, dict)
    return reply[name]


def test_commands_are_answered_as_over_a_connection(node: Node) -> None:
    speaker = acme(node)
    assert speaker.execute("RB.TOPIC.CREATE", "news") == b"OK"
    subscription = speaker.execute("RB.SUB", "news", "ID", "1", "NAME", "mine")
    answer = speaker.execute("RB.PUB", b"news", "ID", "1.2", "NAME", "first", "DATA", '{"n": 1}')
    assert member(answer, b"matched") == 1
    reply = speaker.execute("RB.SUB.READ", member(subscription, b"subscription"), 0)
    assert isinstance(reply, list)
    (pair,) = reply
    assert isinstance(pair, list)
    publications = pair[1]
    assert isinstance(publications, list)
    assert member(publications[0], b"name") == b"first"
    assert member(publications[0], b"data") == b'{"n":1}'
    assert speaker.execute("RB.KV.GET", "nothing") is None
    assert speaker.execute("HELLO", 2) is not None
    assert isinstance(speaker.execute("RB.TOPIC.INFO", "news"), list)


def test_refusals_are_raised_with_their_code(node: Node) -> None:
    stranger = node.speaker()
    for words, code in (
        (("RB.TOPIC.LIST",), "NOAUTH"),
        (("AUTH", "acme", "wrong"), "WRONGPASS"),
        (("NO.SUCH",), "ERR"),
    ):
        with pytest.raises(NodeError) as refused:
            stranger.execute(*words)
        assert refused.value.code == code


def test_followed_subscriptions_are_pushed(node: Node) -> None:
    listener, publisher = acme(node), node.speaker()
    publisher.execute("AUTH", "acme", TENANT)
    listener.execute("RB.TOPIC.CREATE", "news")
    subscription = listener.execute("RB.SUB", "news", "ID", "1", "FOLLOW")
    position = member(publisher.execute("RB.PUB", "news", "ID", "1", "NAME", "a"), b"position")
    pushed: list[Any] = []

    def has_come() -> bool:
        pushed.extend(listener.pushed())
        return bool(pushed)

    wait_until(has_come, what="the publication")
    ((kind, name, publication),) = pushed
    assert (kind, name) == (b"rb.publication", member(subscription, b"subscription"))
    assert publication[b"position"] == position


def test_a_waiting_reader_gets_new_publications_and_returns_when_the_node_closes(
    node: Node,
) -> None:
    reader, publisher = acme(node), node.speaker()
    publisher.execute("AUTH", "acme", TENANT)
    reader.execute("RB.TOPIC.CREATE", "news")
    name = member(reader.execute("RB.SUB", "news", "ID", "1"), b"subscription")
    items: list[Any] = []

    def read(*more: str) -> None:
        # Calls after the close are rejected.
        with contextlib.suppress(NodeError):
            items.append(reader.execute("RB.SUB.READ", "BLOCK", *more, name, ">"))

    waiting = threading.Thread(target=read, args=("60000",))
    waiting.start()
    reply = publisher.execute("RB.PUB", "news", "ID", "1", "NAME", "awaited")
    waiting.join(60)
    ((_, publications),) = items.pop()
    assert publications[0][b"name"] == b"awaited"
    reader.execute("RB.SUB.ACK", name, member(reply, b"position"))
    for_ever = threading.Thread(target=read, args=("0",))
    for_ever.start()
    node.close()
    for_ever.join(60)
    assert not for_ever.is_alive()
    with pytest.raises(NodeError) as closed:
        reader.execute("PING")
    assert closed.value.code == "STOPPED"


def test_answered_writes_survive_a_reopen(tmp_path: Path) -> None:
    with Node(tmp_path / "node", TOKEN) as first:
        speaker = acme(first)
        speaker.execute("RB.KV.SET", "greeting", "hello")
    with Node(tmp_path / "node", TOKEN) as second:
        speaker = second.speaker()
        speaker.execute("AUTH", "acme", TENANT)
        assert speaker.execute("RB.KV.GET", "greeting") == b"hello"


def test_long_work_is_answered_too(node: Node) -> None:
    node.execute("AUTH", TOKEN)
    path = node.execute("RB.CHECKPOINT", "before")
    assert isinstance(path, bytes)
    assert Path(path.decode()).is_dir()
