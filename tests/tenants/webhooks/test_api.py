"""Webhooks as a tenant's admin uses them: through the API, with a real worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from foundation.scope import scoped
from foundation.tasks.relay import TaskRelay
from tenants.models import AuditEntry, Webhook, WebhookDelivery
from tenants.roles import Role
from tests.caller import Caller, problem, signed_in, with_key
from tests.celery_worker import CeleryWorker
from tests.mailbox import next_mail
from tests.make import TenantAccount, make_member, make_tenant, make_user
from tests.tenants.webhooks.receivers import WebhookReceiver, echo_challenges
from tests.waiting import wait_until

WAIT_S = 30.0


@pytest.fixture(scope="module", autouse=True)
def _at_work(tmp_path_factory: pytest.TempPathFactory, valkey_url: str) -> Iterator[None]:
    """A worker and a relay on the installation's own broker."""
    worker = CeleryWorker(tmp_path_factory.mktemp("worker"), valkey_url, processes=2)
    relay = TaskRelay()
    try:
        worker.start()
        thread = relay.start()
        yield
        relay.stop()
        thread.join()
    finally:
        worker.close()


@pytest.fixture
def account() -> TenantAccount:
    return make_tenant()


@pytest.fixture
def admin(server: str, account: TenantAccount) -> Caller:
    return with_key(server, account.admin_key)


def _path(account: TenantAccount, *parts: str) -> str:
    return "/".join((f"/api/v1/tenants/{account.slug}/webhooks", *parts))


def _create(admin: Caller, account: TenantAccount, receiver: WebhookReceiver) -> dict[str, Any]:
    body = {"name": "Hook", "url": receiver.url, "events": ["webhook.*", "api_key.*"]}
    answer = admin.post(_path(account), body)
    assert answer.status_code == 201, answer.text
    created: dict[str, Any] = answer.json()
    return created


def _until(admin: Caller, path: str, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    seen: dict[str, Any] = {}

    def look() -> bool:
        seen.clear()
        seen.update(admin.get(path).json())
        return holds(seen)

    wait_until(look, what=f"{path} to change, seen last: {seen}", timeout_s=WAIT_S)
    return seen


def _active(admin: Caller, account: TenantAccount, receiver: WebhookReceiver) -> dict[str, Any]:
    created = _create(admin, account, receiver)
    path = _path(account, created["id"])
    return {**_until(admin, path, lambda w: w["state"] == "active"), "secret": created["secret"]}


def test_a_new_webhook_becomes_active_by_the_handshake(
    admin: Caller, account: TenantAccount, receiver: WebhookReceiver
) -> None:
    created = _create(admin, account, receiver)
    assert created["state"] == "pending"
    assert created["secret"].startswith("whsec_")
    active = _until(admin, _path(account, created["id"]), lambda w: w["state"] == "active")
    assert "secret" not in active
    handshake = receiver.messages[0]
    assert handshake.event["type"] == "webhook.verification"
    assert handshake.signed_by(created["secret"])


def test_a_receiver_that_does_not_echo_the_challenge_gets_no_events(
    admin: Caller, account: TenantAccount, receiver: WebhookReceiver
) -> None:
    receiver.answer(200, b"hello")
    created = _create(admin, account, receiver)
    path = _path(account, created["id"])
    webhook = _until(admin, path, lambda w: w["state_reason"] is not None)
    assert webhook["state"] == "pending"
    assert webhook["state_reason"] == "Handshake failed: The receiver did not echo the challenge."
    problem(admin.post(f"{path}:test"), 400, "handshake_failed")
    assert receiver.events() == []

    receiver.behaviour = echo_challenges
    assert admin.post(f"{path}:verify").status_code == 202
    _until(admin, path, lambda w: w["state"] == "active")
    problem(admin.post(f"{path}:verify"), 409, "conflict")


def test_an_event_reaches_the_receiver_and_the_log(
    admin: Caller, account: TenantAccount, receiver: WebhookReceiver
) -> None:
    hook = _active(admin, account, receiver)
    key = {"name": "New key", "scopes": ["documents:read"]}
    made_key = admin.post(f"/api/v1/tenants/{account.slug}/api-keys", key).json()
    wait_until(lambda: "api_key.created" in receiver.events(), what="event", timeout_s=WAIT_S)
    message = next(m for m in receiver.messages if m.event["type"] == "api_key.created")
    assert message.signed_by(hook["secret"])
    assert made_key["secret"] not in message.body.decode()
    data = message.event["data"]
    assert isinstance(data, dict)
    assert data["target"] == {"type": "api_key", "id": made_key["id"]}

    log = _path(account, hook["id"], "deliveries?state=delivered")
    _until(admin, log, lambda d: any(i["event_type"] == "api_key.created" for i in d["items"]))


def test_a_test_event_is_sent_and_can_be_redelivered(
    admin: Caller, account: TenantAccount, receiver: WebhookReceiver
) -> None:
    hook = _active(admin, account, receiver)
    answer = admin.post(f"{_path(account, hook['id'])}:test")
    assert answer.status_code == 202
    sent = _until(admin, answer.headers["Location"], lambda d: d["state"] == "delivered")
    again = admin.post(f"{answer.headers['Location']}:redeliver")
    assert again.status_code == 202
    assert again.json()["redelivery_of"] == sent["id"]
    _until(admin, again.headers["Location"], lambda d: d["state"] == "delivered")
    tests = [m for m in receiver.messages if m.event["type"] == "webhook.test"]
    assert len(tests) == 2
    assert tests[0].id == tests[1].id


def test_a_new_url_and_enabling_need_the_handshake_again(
    admin: Caller, account: TenantAccount, receiver: WebhookReceiver
) -> None:
    hook = _active(admin, account, receiver)
    path = _path(account, hook["id"])
    moved = admin.patch(path, {"url": receiver.url + "/elsewhere"}).json()
    assert moved["state"] == "pending"
    _until(admin, path, lambda w: w["state"] == "active")

    assert admin.patch(path, {"state": "disabled"}).json()["state"] == "disabled"
    problem(admin.post(f"{path}:test"), 409, "conflict")
    renamed = admin.patch(path, {"name": "Other", "url": receiver.url}).json()
    assert renamed["state"] == "disabled"
    assert admin.patch(path, {"state": "active"}).json()["state"] == "pending"
    _until(admin, path, lambda w: w["state"] == "active")


def test_a_rotated_secret_is_shown_once_and_signs(
    admin: Caller, account: TenantAccount, receiver: WebhookReceiver
) -> None:
    hook = _active(admin, account, receiver)
    path = _path(account, hook["id"])
    rotated = admin.call("POST", f"{path}:rotate-secret", {}, Idempotency_Key="once").json()
    assert rotated["secret"] != hook["secret"]
    assert rotated["previous_secret_until"] is not None
    repeated = admin.call("POST", f"{path}:rotate-secret", {}, Idempotency_Key="once").json()
    assert repeated["secret"] is None
    admin.post(f"{path}:test")
    wait_until(lambda: "webhook.test" in receiver.events(), what="event", timeout_s=WAIT_S)
    message = next(m for m in receiver.messages if m.event["type"] == "webhook.test")
    assert message.signed_by(rotated["secret"])
    assert message.signed_by(hook["secret"])


def test_deleting_a_webhook_removes_it_with_its_deliveries(
    admin: Caller, account: TenantAccount, receiver: WebhookReceiver
) -> None:
    hook = _active(admin, account, receiver)
    path = _path(account, hook["id"])
    location = admin.post(f"{path}:test").headers["Location"]
    assert admin.delete(path).status_code == 204
    problem(admin.get(path), 404, "not_found")
    problem(admin.get(location), 404, "not_found")
    assert not WebhookDelivery.unscoped.using("relay").filter(webhook_id=hook["id"]).exists()


@pytest.mark.parametrize(
    ("change", "code", "pointer"),
    [
        ({"url": "http://93.184.216.34/"}, "target_not_allowed", "/url"),
        ({"url": "https://10.0.0.1/"}, "target_not_allowed", "/url"),
        ({"url": "https://user:pw@hooks.example.com/"}, "target_not_allowed", "/url"),
        ({"url": "ftp://hooks.example.com/"}, "target_not_allowed", "/url"),
        ({"url": "https://[::ffff:127.0.0.1]/"}, "target_not_allowed", "/url"),
        ({"events": []}, "invalid_body", "/events"),
        ({"events": ["Api.Key"]}, "invalid_body", "/events/0"),
        ({"events": ["**"]}, "invalid_body", "/events/0"),
        ({"events": "*"}, "invalid_body", "/events"),
        ({"name": ""}, "invalid_body", "/name"),
        ({"secret": "mine"}, "invalid_body", "/secret"),
    ],
)
def test_an_invalid_webhook_is_rejected_and_leaves_nothing(
    admin: Caller, account: TenantAccount, change: dict[str, object], code: str, pointer: str
) -> None:
    body = {"name": "Hook", "url": "https://hooks.example.com/", "events": ["*"], **change}
    refusal = problem(admin.post(_path(account), body), 400, code)
    assert refusal["errors"][0]["pointer"] == pointer
    assert not Webhook.unscoped.using("relay").filter(tenant_id=account.tenant.id).exists()


def test_a_plan_bounds_the_number_of_webhooks(server: str, receiver: WebhookReceiver) -> None:
    account = make_tenant(plan="free")
    admin = with_key(server, account.admin_key)
    for _ in range(3):
        _create(admin, account, receiver)
    body = {"name": "One more", "url": receiver.url, "events": ["*"]}
    problem(admin.post(_path(account), body), 403, "quota_exceeded")


def test_developers_see_webhooks_but_neither_change_them_nor_read_deliveries(
    server: str, admin: Caller, account: TenantAccount, receiver: WebhookReceiver
) -> None:
    hook = _active(admin, account, receiver)
    user = make_user()
    make_member(account.tenant, Role.DEVELOPER, user=user)
    developer = signed_in(server, user)
    path = _path(account, hook["id"])
    assert developer.get(path).status_code == 200
    problem(developer.patch(path, {"name": "x"}), 403, "forbidden")
    problem(developer.post(f"{path}:test"), 403, "forbidden")
    problem(developer.get(f"{path}/deliveries"), 403, "forbidden")


def test_a_stale_change_is_refused(
    admin: Caller, account: TenantAccount, receiver: WebhookReceiver
) -> None:
    hook = _active(admin, account, receiver)
    path = _path(account, hook["id"])
    problem(admin.patch(path, {"name": "x"}, If_Match='"v1"'), 412, "precondition_failed")


def test_deliveries_can_be_listed_by_state_only(
    admin: Caller, account: TenantAccount, receiver: WebhookReceiver
) -> None:
    hook = _active(admin, account, receiver)
    log = _path(account, hook["id"], "deliveries")
    problem(admin.get(f"{log}?state=lost"), 400, "invalid_parameter")
    assert admin.get(f"{log}?state=failed").json() == {"items": [], "next_cursor": None}


def test_every_change_is_in_the_audit_log_without_secrets(
    admin: Caller, account: TenantAccount, receiver: WebhookReceiver
) -> None:
    hook = _active(admin, account, receiver)
    path = _path(account, hook["id"])
    rotated = admin.post(f"{path}:rotate-secret").json()
    admin.patch(path, {"name": "Renamed"})
    admin.delete(path)
    with scoped(tenant_id=account.tenant.id):
        entries = list(AuditEntry.objects.filter(target_id=hook["id"]).order_by("pk"))
    assert [entry.action for entry in entries] == [
        "webhook.created",
        "webhook.activated",
        "webhook.secret_rotated",
        "webhook.updated",
        "webhook.deleted",
    ]
    text = repr([(entry.before, entry.after) for entry in entries])
    assert hook["secret"] not in text
    assert rotated["secret"] not in text


def test_admins_are_notified_by_mail_when_a_webhook_is_disabled(
    admin: Caller, account: TenantAccount, receiver: WebhookReceiver
) -> None:
    hook = _active(admin, account, receiver)
    receiver.answer(410)
    admin.post(f"{_path(account, hook['id'])}:test")
    mail = next_mail(account.owner.email, "A webhook of Test tenant was disabled")
    assert "410 Gone" in mail.text
