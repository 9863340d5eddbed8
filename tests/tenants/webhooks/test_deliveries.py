"""The delivery of events to a real receiver."""

from __future__ import annotations

import datetime
import threading

from django.db import connection, connections
from pytest_django import DjangoAssertNumQueries

from foundation.scope import scoped
from tenants import webhook_events
from tenants.models import AuditEntry, Webhook, WebhookDelivery
from tenants.webhooks.delivery import deliver_due
from tests.make import make_tenant
from tests.own_valkey import free_port
from tests.tenants.webhooks.hooks import WebhookSetup, make_webhook
from tests.tenants.webhooks.receivers import WebhookReceiver, echo_challenges
from tests.waiting import wait_until

MINUTE = datetime.timedelta(minutes=1)
DAY = datetime.timedelta(days=1)


def _actions(hook: WebhookSetup) -> list[str]:
    rows = (
        AuditEntry.unscoped.using("relay").filter(tenant_id=hook.account.tenant.id).order_by("pk")
    )
    return list(rows.values_list("action", flat=True))


def test_a_tenant_without_webhooks_pays_one_query_for_an_event(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    account = make_tenant()
    with scoped(tenant_id=account.tenant.id), django_assert_num_queries(1):
        webhook_events.announce("api_key.created", {})


def test_only_active_webhooks_that_want_an_event_get_it(receiver: WebhookReceiver) -> None:
    account = make_tenant()
    wanting = make_webhook(receiver.url, account=account, patterns=("api_key.*",))
    other = make_webhook(receiver.url, account=account, patterns=("member.*",))
    pending = make_webhook(receiver.url, account=account, state=Webhook.State.PENDING)
    stranger = make_webhook(receiver.url)
    wanting.announce("api_key.created")
    assert [d.event_type for d in wanting.deliveries()] == ["api_key.created"]
    assert not any(hook.deliveries() for hook in (other, pending, stranger))


def test_an_event_of_a_rolled_back_transaction_is_not_delivered(receiver: WebhookReceiver) -> None:
    hook = make_webhook(receiver.url)
    with scoped(tenant_id=hook.account.tenant.id):
        webhook_events.announce("api_key.created", {})
        connection.set_rollback(True)
    hook.work()
    assert receiver.messages == []


def test_a_delivery_is_logged_with_status_duration_and_answer(receiver: WebhookReceiver) -> None:
    hook = make_webhook(receiver.url)
    receiver.answer(201, b"thank you\0")
    hook.announce()
    hook.work()
    (delivery,) = hook.deliveries()
    assert (delivery.state, delivery.attempts, delivery.last_status) == ("delivered", 1, 201)
    assert delivery.last_answer == "thank you\ufffd"
    assert delivery.last_duration_ms is not None
    assert delivery.finished_at is not None
    assert delivery.next_attempt_at is None


def test_a_failed_attempt_is_repeated_later_with_the_same_id(receiver: WebhookReceiver) -> None:
    hook = make_webhook(receiver.url)
    receiver.answer(500, b"sorry")
    hook.announce()
    hook.work()
    hook.work()  # too early
    (delivery,) = hook.deliveries()
    assert (delivery.state, delivery.attempts, delivery.last_status) == ("pending", 1, 500)
    assert any(4 < due_s < 7 for due_s in hook.wake_ups_s())

    receiver.behaviour = echo_challenges
    hook.let_pass(MINUTE)
    hook.work()
    (delivery,) = hook.deliveries()
    assert (delivery.state, delivery.attempts) == ("delivered", 2)
    first, second = receiver.messages
    assert first.id == second.id
    assert first.body == second.body


def test_a_receiver_that_does_not_respond_is_recorded_in_words() -> None:
    hook = make_webhook(f"http://127.0.0.1:{free_port()}/nobody")
    hook.announce()
    hook.work()
    (delivery,) = hook.deliveries()
    assert delivery.last_status is None
    assert delivery.last_error.startswith("target_unreachable: ")


def test_after_ten_attempts_a_delivery_has_failed(receiver: WebhookReceiver) -> None:
    hook = make_webhook(receiver.url)
    receiver.answer(500)
    hook.announce()
    for _ in range(12):
        hook.work()
        Webhook.unscoped.using("relay").filter(pk=hook.webhook.pk).update(failing_since=None)
        hook.let_pass(2 * DAY)
    (delivery,) = hook.deliveries()
    assert (delivery.state, delivery.attempts) == ("failed", 10)
    assert len(receiver.messages) == 10


def test_deliveries_are_made_in_the_order_of_events(receiver: WebhookReceiver) -> None:
    hook = make_webhook(receiver.url)
    for number in range(20):
        hook.announce("api_key.created", number=str(number))
    hook.work()
    assert [m.event["data"] for m in receiver.messages] == [{"number": str(n)} for n in range(20)]


def test_a_failing_receiver_is_called_once_however_many_deliveries_wait(
    receiver: WebhookReceiver,
) -> None:
    hook = make_webhook(receiver.url)
    receiver.answer(503)
    for _ in range(20):
        hook.announce()
    for _ in range(5):
        hook.work()
    assert len(receiver.messages) == 1

    receiver.behaviour = echo_challenges
    hook.let_pass(MINUTE)
    hook.work()
    assert len(receiver.messages) == 21
    assert {d.state for d in hook.deliveries()} == {"delivered"}
    assert hook.now().failing_since is None


def test_two_workers_never_call_one_receiver_at_the_same_time(receiver: WebhookReceiver) -> None:
    hook = make_webhook(receiver.url)
    hook.announce("first.event")
    receiver.gate.clear()

    def work() -> None:
        hook.work()
        connections.close_all()

    first = threading.Thread(target=work)
    first.start()
    wait_until(lambda: len(receiver.messages) == 1, what="the first delivery to be under way")
    hook.announce("second.event")
    hook.work()  # returns without effect: the lock is held
    assert receiver.events() == ["first.event"]
    receiver.gate.set()
    first.join()
    assert receiver.events() == ["first.event", "second.event"]


def test_a_long_backlog_yields_to_others_after_a_turn(receiver: WebhookReceiver) -> None:
    hook = make_webhook(receiver.url)
    hook.announce()
    before = len(hook.wake_ups_s())
    deliver_due(hook.account.tenant.id, hook.webhook.pk, turn_s=0)
    assert receiver.messages == []
    wait_until(lambda: len(hook.wake_ups_s()) <= before + 1, what="the wake-up to be arranged")
    hook.work()
    assert len(receiver.messages) == 1


def test_410_gone_disables_a_webhook_at_once(receiver: WebhookReceiver) -> None:
    hook = make_webhook(receiver.url)
    for _ in range(3):
        hook.announce()
    receiver.answer(410)
    hook.work()
    assert (hook.now().state, hook.now().state_reason) == (
        "disabled",
        "The receiver responded with 410 Gone.",
    )
    assert [d.state for d in hook.deliveries()] == ["failed"] * 3
    assert len(receiver.messages) == 1
    assert "webhook.disabled" in _actions(hook)


def test_three_days_of_failures_disable_a_webhook_and_one_success_starts_them_again(
    receiver: WebhookReceiver,
) -> None:
    hook = make_webhook(receiver.url)
    receiver.answer(500)
    hook.announce()
    hook.work()
    hook.let_pass(2 * DAY)
    receiver.behaviour = echo_challenges
    hook.work()
    assert hook.now().failing_since is None

    receiver.answer(500)
    hook.announce()
    hook.work()
    hook.let_pass(3 * DAY)
    hook.work()
    assert hook.now().state == "disabled"
    assert hook.now().state_reason == "Every delivery has failed for three days."


def test_a_webhook_can_be_deleted_during_a_call(receiver: WebhookReceiver) -> None:
    hook = make_webhook(receiver.url)
    hook.announce()
    receiver.gate.clear()

    def work() -> None:
        hook.work()
        connections.close_all()

    working = threading.Thread(target=work)
    working.start()
    wait_until(lambda: bool(receiver.messages), what="the delivery to be under way")
    with scoped(tenant_id=hook.account.tenant.id):
        Webhook.objects.get(pk=hook.webhook.pk).delete()
    receiver.gate.set()
    working.join()
    assert not WebhookDelivery.unscoped.using("relay").filter(webhook_id=hook.webhook.pk).exists()
