"""Publishing and subscribing through a client that everybody has."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
import redis

from tests.own_storage_node import OwnStorageNode, ask
from tests.storage_engine.node.listener import Listener
from tests.waiting import wait_until

_numbers = count()


@pytest.fixture(params=[2, 3], ids=["RESP2", "RESP3"])
def tenant(shared_node: OwnStorageNode, request: pytest.FixtureRequest) -> Iterator[redis.Redis]:
    """A client in a namespace of its own, which has the topic `news`."""
    name = f"tenant-{next(_numbers)}"
    with shared_node.namespace(name, protocol=request.param) as client:
        ask(client, "RB.TOPIC.CREATE", "news")
        yield client


def as_map(answer: Any) -> dict[str, Any]:
    """A map is a flat array in version 2."""
    if isinstance(answer, dict):
        return answer
    return dict(zip(answer[::2], answer[1::2], strict=True))


def names(publications: list[Any]) -> list[str]:
    return [as_map(publication)["name"] for publication in publications]


def ask_map(client: redis.Redis, *words: object) -> dict[str, Any]:
    return as_map(ask(client, *words))


def test_the_later_of_publication_and_subscription_finds_the_other(tenant: redis.Redis) -> None:
    before = ask_map(tenant, "RB.PUB", "news", "ID", "1.4.2", "NAME", "before", "DATA", '{"n":1}')
    subscription = ask_map(tenant, "RB.SUB", "news", "ID", "1.4", "FROM", "-1m")
    after = ask_map(tenant, "RB.PUB", "news", "ID", "1.4", "NAME", "after")
    elsewhere = ask_map(tenant, "RB.PUB", "news", "ID", "1.5", "NAME", "elsewhere")
    assert names(subscription["publications"]) == ["before"]
    assert json.loads(as_map(subscription["publications"][0])["data"]) == {"n": 1}
    assert [before["matched"], after["matched"], elsewhere["matched"]] == [0, 1, 0]
    assert before["position"] < subscription["position"] < after["position"]


def test_a_reader_gets_the_publications_after_a_position(tenant: redis.Redis) -> None:
    subscription = ask_map(tenant, "RB.SUB", "news", "ID", "1")
    sid = subscription["subscription"]
    assert ask(tenant, "RB.SUB.READ", sid, ">") is None
    positions = [
        ask_map(tenant, "RB.PUB", "news", "ID", "1", "NAME", name)["position"] for name in "abc"
    ]
    [[of, publications]] = ask(tenant, "RB.SUB.READ", sid, subscription["position"])
    assert of == sid
    assert names(publications) == ["a", "b", "c"]
    [[_, publications]] = ask(tenant, "RB.SUB.READ", "COUNT", 1, sid, positions[0])
    assert names(publications) == ["b"]


def test_a_reader_resumes_after_its_acknowledged_position(tenant: redis.Redis) -> None:
    sid = ask_map(tenant, "RB.SUB", "news", "ID", "1")["subscription"]
    first = ask_map(tenant, "RB.PUB", "news", "ID", "1", "NAME", "first")["position"]
    ask_map(tenant, "RB.PUB", "news", "ID", "1", "NAME", "second")
    assert ask(tenant, "RB.SUB.ACK", sid, first) == 1
    assert ask(tenant, "RB.SUB.ACK", sid, first - 1) == 0
    [[_, publications]] = ask(tenant, "RB.SUB.READ", sid, ">")
    assert names(publications) == ["second"]
    with pytest.raises(redis.ResponseError, match="no publication has this position yet"):
        ask(tenant, "RB.SUB.ACK", sid, first + 1_000_000)


def test_a_reader_waits_until_something_is_published(
    tenant: redis.Redis, shared_node: OwnStorageNode
) -> None:
    subscription = ask_map(tenant, "RB.SUB", "news", "ID", "1")
    sid = subscription["subscription"]
    items: list[Any] = []
    words = ("RB.SUB.READ", "BLOCK", 0, sid, subscription["position"])
    reader = threading.Thread(target=lambda: items.extend(ask(tenant, *words)))
    reader.start()
    other = shared_node.namespace(str(tenant.get_connection_kwargs()["username"]))
    listening = "rillbase_node_listeners"
    wait_until(lambda: int(shared_node.metric(listening)) >= 1, what="the reader to wait")
    ask(other, "RB.PUB", "news", "ID", "1.2", "NAME", "late")
    reader.join()
    assert names(items[0][1]) == ["late"]


def test_a_reader_that_waits_in_vain_gets_an_empty_response(tenant: redis.Redis) -> None:
    sid = ask_map(tenant, "RB.SUB", "news", "ID", "1")["subscription"]
    assert ask(tenant, "RB.SUB.READ", "BLOCK", 5, sid, ">") is None
    assert tenant.ping()


def test_an_ended_subscription_is_reported(tenant: redis.Redis) -> None:
    sid = ask_map(tenant, "RB.SUB", "news", "ID", "1")["subscription"]
    assert ask(tenant, "RB.UNSUB", sid) == 1
    assert ask(tenant, "RB.UNSUB", sid) == 0
    assert ask(tenant, "RB.SUB.READ", sid, 0) == [[sid, None]]
    with pytest.raises(redis.ResponseError, match="has ended"):
        ask(tenant, "RB.SUB.ACK", sid, 0)


def test_a_publication_that_is_sent_twice_under_one_name_is_published_once(
    tenant: redis.Redis,
) -> None:
    words = ("RB.PUB", "news", "ID", "1", "NAME", "a", "ONCE")
    first, second = ask_map(tenant, *words), ask_map(tenant, *words)
    assert (first["duplicate"], second["duplicate"]) == (0, 1)
    assert first["position"] == second["position"]
    assert names(ask(tenant, "RB.DATA", "news", "ID", "")) == ["a"]


def test_a_filter_decides_on_the_data(tenant: redis.Redis) -> None:
    ask_map(tenant, "RB.SUB", "news", "ID", "1", "FILTER", '{"n": {"$gt": 1}}')
    matched = [
        ask_map(tenant, "RB.PUB", "news", "ID", "1", "DATA", json.dumps({"n": n}))["matched"]
        for n in range(4)
    ]
    assert matched == [0, 0, 1, 1]
    with pytest.raises(redis.ResponseError, match=r"\$what"):
        ask_map(tenant, "RB.SUB", "news", "ID", "1", "FILTER", '{"n": {"$what": 1}}')


def test_a_subscriber_can_request_each_publication_only_once(tenant: redis.Redis) -> None:
    for _ in range(2):
        ask_map(tenant, "RB.SUB", "news", "ID", "1", "USER", "ann", "UNSEEN")
    assert ask_map(tenant, "RB.PUB", "news", "ID", "1")["matched"] == 1


def test_circles_on_the_ground_meet_where_they_overlap(tenant: redis.Redis) -> None:
    ask(tenant, "RB.TOPIC.CREATE", "city", "KIND", "geo")
    berlin = ("CIRCLE", 13.40, 52.52, 500)
    ask_map(tenant, "RB.SUB", "city", *berlin)
    # 0.01 degrees of latitude are 1,113 m.
    near = ask_map(tenant, "RB.PUB", "city", "CIRCLE", 13.40, 52.53, 700)
    far = ask_map(tenant, "RB.PUB", "city", "CIRCLE", 13.40, 52.53, 500)
    assert (near["matched"], far["matched"]) == (1, 0)
    [listed] = ask(tenant, "RB.SUBS", "city")
    assert as_map(listed)["place"] == ["CIRCLE", "13.4", "52.52", "500"]


def test_subscriptions_are_listed_and_ended_by_the_names_in_the_list(tenant: redis.Redis) -> None:
    subscription = [ask_map(tenant, "RB.SUB", "news", "ID", place) for place in ("1", "1.2", "2")]
    listed = [as_map(one) for one in ask(tenant, "RB.SUBS", "news")]
    assert [one["subscription"] for one in listed] == [one["subscription"] for one in subscription]
    [below] = ask(tenant, "RB.SUBS", "news", "ID", "2")
    assert as_map(below)["subscription"] == subscription[2]["subscription"]
    page = ask(tenant, "RB.SUBS", "news", "AFTER", subscription[0]["position"], "COUNT", 1)
    assert as_map(page[0])["subscription"] == subscription[1]["subscription"]
    assert [ask(tenant, "RB.UNSUB", one["subscription"]) for one in listed] == [1, 1, 1]
    assert ask(tenant, "RB.SUBS", "news") == []


def test_replies_keep_the_order_of_any_pipeline(tenant: redis.Redis) -> None:
    pipeline = tenant.pipeline(transaction=False)
    for number in range(200):
        ask(pipeline, "RB.PUB", "news", "ID", "1", "NAME", f"n{number}")
        ask(pipeline, "ECHO", str(number))
        ask(pipeline, "RB.PUB", "nowhere", "ID", "1")
        ask(pipeline, "RB.KV.SET", "k", number)
        ask(pipeline, "RB.KV.GET", "k")
    answers = pipeline.execute(raise_on_error=False)
    positions = [as_map(answer)["position"] for answer in answers[::5]]
    assert positions == sorted(positions)
    assert answers[1::5] == answers[4::5] == [str(number) for number in range(200)]
    assert all("the topic does not exist" in str(answer) for answer in answers[2::5])


def test_the_contents_of_a_dropped_topic_are_removed(tenant: redis.Redis) -> None:
    sid = ask_map(tenant, "RB.SUB", "news", "ID", "1")["subscription"]
    ask_map(tenant, "RB.PUB", "news", "ID", "1")
    assert ask(tenant, "RB.TOPIC.DROP", "news") == 1
    ask(tenant, "RB.TOPIC.CREATE", "news")
    assert ask(tenant, "RB.DATA", "news", "ID", "") == []
    assert ask(tenant, "RB.SUB.READ", sid, 0) == [[sid, None]]


def test_pushes_begin_behind_a_position_and_go_on_live(shared_node: OwnStorageNode) -> None:
    client = shared_node.namespace("listens", protocol=3)
    ask(client, "RB.TOPIC.CREATE", "news")
    subscription = ask_map(client, "RB.SUB", "news", "ID", "1")
    sid = subscription["subscription"]
    for name in "ab":
        ask_map(client, "RB.PUB", "news", "ID", "1", "NAME", name)
    listener = Listener(client)
    assert listener.ask("RB.SUB.RESUME", sid) == "OK"
    assert names(listener.publications(2)) == ["a", "b"]
    for name in "cd":
        ask_map(client, "RB.PUB", "news", "ID", "1", "NAME", name)
    result = listener.publications(2)
    assert names(result) == ["c", "d"]
    assert listener.ask("RB.SUB.RESUME", sid, result[0]["position"]) == "OK"
    assert names(listener.publications(1)) == ["d"]
    assert listener.ask("RB.SUB.PAUSE", sid) == 1
    ask_map(client, "RB.PUB", "news", "ID", "1", "NAME", "unheard")
    assert listener.ask("RB.SUB.RESUME", sid, result[1]["position"]) == "OK"
    assert names(listener.publications(1)) == ["unheard"]
    ask(client, "RB.UNSUB", sid)
    assert listener.next_push() == ["rb.end", sid, "unsubscribed"]
    listener.close()


def test_a_follower_misses_nothing(shared_node: OwnStorageNode) -> None:
    client = shared_node.namespace("follows", protocol=3)
    ask(client, "RB.TOPIC.CREATE", "news")
    listener = Listener(client)
    ends = threading.Event()
    published: list[int] = []

    def publish() -> None:
        own = shared_node.namespace("follows", protocol=3)
        while not ends.is_set():
            published.append(ask_map(own, "RB.PUB", "news", "ID", "1")["position"])

    publisher = threading.Thread(target=publish)
    publisher.start()
    try:
        wait_until(lambda: len(published) > 5, what="publications before")
        subscription = listener.ask("RB.SUB", "news", "ID", "1", "FROM", "-1h", "FOLLOW")
        begun = len(published)
        wait_until(lambda: len(published) > begun + 20, what="publications afterwards")
    finally:
        ends.set()
        publisher.join()
    before = [one["position"] for one in subscription["publications"]]
    pushed = [one["position"] for one in listener.publications(len(published) - len(before))]
    assert before + pushed == published
    listener.close()


def test_the_listener_of_an_expired_subscription_is_notified(shared_node: OwnStorageNode) -> None:
    client = shared_node.namespace("expires", protocol=3)
    ask(client, "RB.TOPIC.CREATE", "news")
    listener = Listener(client)
    subscription = listener.ask("RB.SUB", "news", "ID", "1", "UNTIL", "+50ms", "FOLLOW")
    assert listener.next_push() == ["rb.end", subscription["subscription"], "expired"]
    listener.close()
