"""Webhooks of topics, end to end: a clock and a worker of Celery, a relay, and a receiver."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from foundation.tasks.relay import TaskRelay
from tests.celery_worker import CeleryWorker, running_beat
from tests.http_receiver import receiver
from tests.storage_engine.topics.made import Topic
from tests.tenants.webhooks.hooks import make_webhook
from tests.waiting import wait_until

WAIT_S = 60.0


@pytest.mark.long
def test_what_is_published_comes_to_the_webhook_and_then_the_end_of_the_subscription(
    topic: Topic, valkey_url: str, tmp_path: Path
) -> None:
    worker, relay = CeleryWorker(tmp_path, valkey_url, processes=2), TaskRelay()
    with receiver() as hook:
        made = make_webhook(hook.url, made=topic.made, patterns=("nothing.at_all",))
        try:
            worker.start()
            thread = relay.start()
            with running_beat(tmp_path, valkey_url):
                subscription = topic.subscribe(id="1", webhook=str(made.webhook.pk), to="+5s")
                topic.publish(id="1.2", publication_id="a", data={"n": 1})

                def told() -> list[str]:
                    return [json.loads(request.body)["type"] for request in hook.requests]

                wait_until(lambda: len(told()) > 1, what="the deliveries", timeout_s=WAIT_S)
            relay.stop()
            thread.join()
        finally:
            worker.close()
    assert told() == ["topic.publications", "topic.subscription_ended"]
    first = json.loads(hook.requests[0].body)["data"]
    assert first["subscription_id"] == subscription["subscription_id"]
    assert [news["publication_id"] for news in first["publications"]] == ["a"]
