"""Signatures, checked against the specification's example and an independent receiver."""

from __future__ import annotations

import base64
import datetime

from django.utils import timezone

from tenants.models import Webhook
from tenants.webhooks import signing
from tenants.webhooks.signing import sign
from tests.tenants.webhooks.hooks import make_webhook
from tests.tenants.webhooks.receivers import WebhookReceiver


def test_the_signature_is_that_of_the_specifications_example() -> None:
    key = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    signature = sign(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_receiver_can_verify_what_it_gets(receiver: WebhookReceiver) -> None:
    hook = make_webhook(receiver.url)
    hook.announce("api_key.created", name="käse", odd="\u2028</script>")
    hook.work()
    (message,) = receiver.messages
    assert message.signed_by(hook.secret)
    assert not message.signed_by(make_webhook(receiver.url).secret)
    assert message.headers["content-type"] == "application/json"
    assert message.event["type"] == "api_key.created"
    assert message.event["data"] == {"name": "käse", "odd": "\u2028</script>"}


def test_while_a_rotation_lasts_messages_are_signed_by_both_secrets(
    receiver: WebhookReceiver,
) -> None:
    hook = make_webhook(receiver.url)
    row = hook.now()
    new = signing.rotate(row, timezone.now())
    row.save(using="relay")
    hook.announce()
    hook.work()
    assert receiver.messages[0].signed_by(hook.secret)
    assert receiver.messages[0].signed_by(new)

    long_ago = timezone.now() - datetime.timedelta(seconds=1)
    Webhook.unscoped.using("relay").filter(pk=row.pk).update(previous_until=long_ago)
    hook.announce()
    hook.work()
    assert not receiver.messages[1].signed_by(hook.secret)
    assert receiver.messages[1].signed_by(new)


def test_a_secret_is_sealed_at_rest(receiver: WebhookReceiver) -> None:
    hook = make_webhook(receiver.url)
    kept = bytes(hook.now().sealed_secret)
    assert base64.b64decode(hook.secret.removeprefix("whsec_")) not in kept
