"""Subscriptions that are delivered to webhooks."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.utils import timezone

from foundation.scope import scoped
from storage_engine.models import DeliveredSubscription
from storage_engine.topics.deliveries import sweep
from tenants.models import Webhook, WebhookDelivery
from tenants.webhooks.delivery import deliver_due
from tests.caller import problem
from tests.http_receiver import Receiver, receiver
from tests.make import make_tenant
from tests.storage_engine.topics.topic_client import Topic, make_topic
from tests.tenants.webhooks.hooks import make_webhook

Json = dict[str, Any]


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiver() as webhook_receiver:
        yield webhook_receiver


@pytest.fixture
def webhook(topic: Topic, hook: Receiver) -> Webhook:
    """An active webhook that is not itself subscribed to any events."""
    webhook = make_webhook(hook.url, account=topic.account, patterns=("nothing.at_all",))
    return webhook.webhook


def payloads(webhook: Webhook) -> list[Json]:
    rows = WebhookDelivery.unscoped.using("relay").filter(webhook=webhook).order_by("pk")
    return [row.payload for row in rows]


def delivered_types(webhook: Webhook) -> list[str]:
    return [
        publication["publication_id"]
        for payload in payloads(webhook)
        if payload["type"] == "topic.publications"
        for publication in payload["data"]["publications"]
    ]


def test_later_publications_go_to_the_webhook_in_batches(topic: Topic, webhook: Webhook) -> None:
    topic.publish(id="1", publication_id="before")
    subscription = topic.subscribe(
        id="1", subscriber="ann", webhook=str(webhook.pk), **{"from": "-1h", "to": "+1h"}
    )
    assert [p["publication_id"] for p in subscription["publications"]] == ["before"]
    topic.publish(id="1", publication_id="a", data={"n": {"$numberLong": "1"}})
    topic.publish(id="1", publication_id="b")
    sweep()
    (payload,) = payloads(webhook)
    assert payload["type"] == "topic.publications"
    data = payload["data"]
    assert data["topic"] == topic.name
    assert data["subscription_id"] == subscription["subscription_id"]
    assert data["subscriber"] == "ann"
    assert [p["publication_id"] for p in data["publications"]] == ["a", "b"]
    assert data["publications"][0]["data"] == {"n": 1}
    assert data["publications"][0]["id"] == "1"
    sweep()
    topic.publish(id="1", publication_id="c")
    sweep()
    assert delivered_types(webhook) == ["a", "b", "c"]


def test_the_receiver_gets_a_signed_message(topic: Topic, webhook: Webhook, hook: Receiver) -> None:
    topic.subscribe(id="1", webhook=str(webhook.pk))
    topic.publish(id="1", publication_id="a")
    sweep()
    deliver_due(topic.account.tenant.id, webhook.pk)
    (received,) = hook.requests
    assert "webhook-signature" in received.headers
    assert json.loads(received.body)["data"]["publications"][0]["publication_id"] == "a"


def test_the_end_of_a_subscription_is_delivered_last(topic: Topic, webhook: Webhook) -> None:
    subscription = topic.subscribe(id="1", webhook=str(webhook.pk), **{"from": "-1h", "to": "+1h"})
    topic.publish(id="1", publication_id="last", at="-1m")
    _turn_back(subscription["subscription_id"])
    sweep()
    sweep()
    assert [payload["type"] for payload in payloads(webhook)] == [
        "topic.publications",
        "topic.subscription_ended",
    ]
    assert topic.publish(id="1")["matched_subscribers"] == 0
    sweep()
    assert delivered_types(webhook) == ["last"]


def test_publications_after_the_end_are_not_delivered(topic: Topic, webhook: Webhook) -> None:
    subscription = topic.subscribe(id="1", webhook=str(webhook.pk), to="+1h")
    _turn_back(subscription["subscription_id"])
    topic.publish(id="1", publication_id="late", at="-1s")
    sweep()
    sweep()
    assert [payload["type"] for payload in payloads(webhook)] == ["topic.subscription_ended"]


def test_a_deleted_subscription_gets_no_more_changes(topic: Topic, webhook: Webhook) -> None:
    subscription = topic.subscribe(id="1", webhook=str(webhook.pk))
    path = f"{topic.path}/subscriptions/{subscription['subscription_id']}"
    assert topic.caller.delete(path).status_code == 204
    topic.publish(id="1")
    sweep()
    assert payloads(webhook) == []


def test_a_dropped_topic_ends_its_subscriptions(topic: Topic, webhook: Webhook) -> None:
    topic.subscribe(id="1", webhook=str(webhook.pk))
    assert topic.caller.delete(topic.control_path).status_code == 204
    assert [payload["type"] for payload in payloads(webhook)] == ["topic.subscription_ended"]
    assert not DeliveredSubscription.unscoped.using("relay").filter(webhook=webhook).exists()


def test_a_disabled_webhook_ends_its_subscriptions(topic: Topic, webhook: Webhook) -> None:
    topic.subscribe(id="1", webhook=str(webhook.pk))
    with scoped(tenant_id=topic.account.tenant.id):
        Webhook.objects.filter(pk=webhook.pk).update(state=Webhook.State.DISABLED)
    sweep()
    assert topic.publish(id="1")["matched_subscribers"] == 0
    refusal = topic.caller.post(
        f"{topic.path}/subscriptions", {"id": "1", "webhook": str(webhook.pk)}
    )
    problem(refusal, 400, "invalid_body")


def test_a_webhook_of_another_tenant_is_none(server: str, webhook: Webhook) -> None:
    other = make_topic(server, account=make_tenant())
    refusal = other.caller.post(
        f"{other.path}/subscriptions", {"id": "1", "webhook": str(webhook.pk)}
    )
    problem(refusal, 400, "invalid_body")


def test_a_repeated_call_is_delivered_once(topic: Topic, webhook: Webhook) -> None:
    body = {"id": "1", "webhook": str(webhook.pk)}
    for _ in range(2):
        topic.caller.post(f"{topic.path}/subscriptions", body, Idempotency_Key="once")
    topic.publish(id="1", publication_id="a")
    sweep()
    assert delivered_types(webhook) == ["a"]


def _turn_back(public_id: str) -> None:
    """Make a subscription expire."""
    rows = DeliveredSubscription.unscoped.using("relay").filter(public_id=public_id)
    row = rows.get()
    with scoped(tenant_id=row.tenant_id):
        DeliveredSubscription.objects.filter(pk=row.pk).update(
            expires_at=timezone.now() - datetime.timedelta(seconds=10)
        )
