"""Webhooks of topics, end to end: a clock and a worker of Celery, a relay, and a receiver."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from foundation.tasks.relay import TaskRelay
from tests.celery_worker import CeleryWorker, running_beat
from tests.http_receiver import receiver
from tests.storage_engine.topics.topic_client import Topic
from tests.tenants.webhooks.hooks import make_webhook
from tests.waiting import wait_until

WAIT_S = 60.0


@pytest.mark.long
def test_a_webhook_receives_publications_and_then_the_end_of_the_subscription(
    topic: Topic, valkey_url: str, tmp_path: Path
) -> None:
    worker, relay = CeleryWorker(tmp_path, valkey_url, processes=2), TaskRelay()
    with receiver() as hook:
        webhook = make_webhook(hook.url, account=topic.account, patterns=("nothing.at_all",))
        try:
            worker.start()
            thread = relay.start()
            with running_beat(tmp_path, valkey_url):
                subscription = topic.subscribe(id="1", webhook=str(webhook.webhook.pk), to="+5s")
                topic.publish(id="1.2", publication_id="a", data={"n": 1})

                def delivered_types() -> list[str]:
                    return [json.loads(request.body)["type"] for request in hook.requests]

                wait_until(
                    lambda: len(delivered_types()) > 1, what="the deliveries", timeout_s=WAIT_S
                )
            relay.stop()
            thread.join()
        finally:
            worker.close()
    assert delivered_types() == ["topic.publications", "topic.subscription_ended"]
    first = json.loads(hook.requests[0].body)["data"]
    assert first["subscription_id"] == subscription["subscription_id"]
    assert [news["publication_id"] for news in first["publications"]] == ["a"]
