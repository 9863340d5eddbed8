"""The storage node's disk is full: publishing and adding events answer 507, and work again soon."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.aggregates.aggregate_client import AggregateClient, make_aggregate
from tests.caller import problem
from tests.own_server import another_server
from tests.own_storage_node import OwnStorageNode
from tests.small_disk import SmallDisk, small_disk
from tests.storage_engine.topics.topic_client import Topic, make_topic
from tests.waiting import wait_until

#: Writes must be accepted again this soon after space was freed.
RECOVERY_S = 10.0
LARGE = {"text": "x" * 50_000}
EVENT = {"customer": "acme", "app": "shop", "endpoint": "/", "latency_ms": 1}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", size_mib=64) as disk_path:
        yield disk_path


@pytest.fixture
def server_on_it(disk: SmallDisk, settings_environment: pytest.MonkeyPatch) -> Iterator[str]:
    """A server whose storage node is on the small disk."""
    node = OwnStorageNode(disk.path, **{"reserve-mib": 8})
    settings_environment.setenv("STORAGE_URL", node.url)
    try:
        with another_server(STORAGE_URL=node.url) as other:
            yield other.url
    finally:
        node.close()


def publish(topic: Topic, **more: object) -> requests.Response:
    return topic.caller.post(f"{topic.path}/publications", {"id": "1", **more})


def add(aggregate: AggregateClient) -> requests.Response:
    return aggregate.caller.post(f"{aggregate.path}/events", EVENT)


def test_a_full_storage_node_refuses_writes_with_507_and_accepts_them_again(
    server_on_it: str, disk: SmallDisk
) -> None:
    topic = make_topic(server_on_it)
    aggregate = make_aggregate(server_on_it, account=topic.account)
    assert (publish(topic).status_code, add(aggregate).status_code) == (201, 201)
    disk.fill(leave_bytes=2_000_000)
    published, answer = 1, publish(topic, data=LARGE)
    while answer.status_code == 201:
        published, answer = published + 1, publish(topic, data=LARGE)
    for refused in (answer, publish(topic), add(aggregate)):
        problem(refused, 507, "storage_full")
        assert int(refused.headers["Retry-After"]) > 0
    page = topic.caller.get(f"{topic.path}/publications?id=1&limit=1000").json()
    assert len(page["items"]) == published, "reads go on, and nothing that was refused is there"
    assert len(aggregate.rows(group_by=["app"])) == 1

    disk.empty()
    wait_until(
        lambda: publish(topic).status_code == 201 and add(aggregate).status_code == 201,
        what="room",
        timeout_s=RECOVERY_S,
    )
    assert publish(topic, data=LARGE).status_code == 201
