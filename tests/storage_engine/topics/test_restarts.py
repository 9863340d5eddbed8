"""The storage node is killed while others publish and listen."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests.own_node import OwnNode
from tests.own_server import another_server
from tests.realtime.client import greeted
from tests.storage_engine.topics.topic_client import Topic, make_topic, names
from tests.waiting import wait_until

PUBLICATIONS = 60


@pytest.fixture
def own_topic(own_node: OwnNode) -> Iterator[Topic]:
    """A topic on a server in a separate process, whose storage node may be killed."""
    with another_server(STORAGE_URL=own_node.url) as other:
        yield make_topic(other.url)


def key_of(topic: Topic) -> str:
    return topic.caller.headers["Authorization"].removeprefix("Bearer ")


def test_subscribers_receive_every_publication_exactly_once(
    own_node: OwnNode, own_topic: Topic
) -> None:
    topic, accepted = own_topic, list[str]()

    def publish() -> None:
        """Publish as a cautious client does: repeat with the same id until it is accepted."""
        for number in range(PUBLICATIONS):
            body = {"id": "1", "publication_id": f"p{number}"}
            while topic.caller.post(f"{topic.path}/publications", body).status_code >= 500:
                pass
            accepted.append(body["publication_id"])

    with greeted(topic.caller.base, key_of(topic)) as client:
        client.send(type="subscribe", id="t", topic=topic.name, topic_id="1", to="+1h")
        client.wait_for(lambda f: f["type"] == "ready")
        publisher = threading.Thread(target=publish)
        publisher.start()
        for part in (1, 2):
            wait_until(
                lambda part=part: len(accepted) > part * PUBLICATIONS // 3,  # type: ignore[misc]
                what="publications",
            )
            own_node.kill()
            own_node.start()
        publisher.join()
        received = [
            client.wait_for(lambda f: f["type"] == "event")["key"] for _ in range(PUBLICATIONS)
        ]
    assert received == accepted == [f"p{number}" for number in range(PUBLICATIONS)]
    page = topic.caller.get(f"{topic.path}/publications?id=1&limit=1000").json()
    assert names(page["items"]) == accepted


def test_subscribers_are_notified_that_the_node_is_unavailable(
    own_node: OwnNode, own_topic: Topic
) -> None:
    with greeted(own_topic.caller.base, key_of(own_topic)) as client:
        client.send(type="subscribe", id="t", topic="news", topic_id="1", to="+1h")
        client.wait_for(lambda f: f["type"] == "ready")
        own_node.kill()
        client.wait_for(lambda f: f["type"] == "status" and f["state"] == "stale")
        own_node.start()
        client.wait_for(lambda f: f["type"] == "status" and f["state"] == "live")
        own_topic.publish(id="1", publication_id="p")
        assert client.wait_for(lambda f: f["type"] == "event")["key"] == "p"


def test_calls_wait_for_a_node_that_restarts_and_no_longer(
    own_node: OwnNode, own_topic: Topic
) -> None:
    own_topic.publish(id="1")
    own_node.kill()
    away = own_topic.caller.post(f"{own_topic.path}/publications", {"id": "1"})
    assert (away.status_code, away.json()["code"]) == (503, "unavailable")
    assert away.headers["Retry-After"] == "1"
    answers = []
    waiting = threading.Thread(
        target=lambda: answers.append(own_topic.publish(id="1", publication_id="patient"))
    )
    own_node.start()
    waiting.start()
    own_node.kill()
    own_node.start()
    waiting.join()
    assert [answer["publication_id"] for answer in answers] == ["patient"]


def test_topics_are_declared_again_to_a_node_that_lost_its_data(
    own_node: OwnNode, own_topic: Topic
) -> None:
    own_topic.publish(id="1")
    own_node.kill()
    own_node.forget()
    own_node.start()
    own_topic.publish(id="1", publication_id="p")
    page = own_topic.caller.get(f"{own_topic.path}/publications?id=1").json()
    assert names(page["items"]) == ["p"]
