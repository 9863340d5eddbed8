"""The examples in the guide work as described."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.tenants.webhooks.hooks import make_webhook
from tests.tenants.webhooks.receivers import Message, WebhookReceiver

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guide" / "webhooks.md"


def _example(language: str) -> str:
    match = re.search(rf"^```{language}\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    assert match is not None
    return match[1]


@pytest.fixture
def message_and_secret(receiver: WebhookReceiver) -> tuple[Message, str]:
    hook = make_webhook(receiver.url)
    hook.announce("api_key.created", name="käse")
    hook.work()
    return receiver.messages[0], hook.secret


def test_the_python_example_accepts_a_message_and_refuses_a_forged_one(
    message_and_secret: tuple[Message, str],
) -> None:
    message, secret = message_and_secret
    names: dict[str, object] = {}
    exec(_example("python"), names)
    verify = names["verify"]
    assert callable(verify)
    old = {**message.headers, "webhook-timestamp": "1700000000"}
    assert verify(secret, message.headers, message.body) is True
    assert verify(secret, message.headers, message.body + b" ") is False
    assert verify(secret, old, message.body) is False


def test_the_javascript_example_accepts_a_message_and_refuses_a_forged_one(
    message_and_secret: tuple[Message, str],
) -> None:
    node = shutil.which("node")
    assert node is not None, "Node is needed to try the guide's example"
    message, secret = message_and_secret
    program = _example("js") + (
        "const [secret, headers, text] = JSON.parse(require('fs').readFileSync(0, 'utf8'));"
        "const old = {...headers, 'webhook-timestamp': '1700000000'};"
        "const tries = [[headers, text], [headers, text + ' '], [old, text]];"
        "console.log(JSON.stringify(tries.map(([h, t]) => verify(secret, h, Buffer.from(t)))));"
    )
    given = json.dumps([secret, message.headers, message.body.decode()])
    run = subprocess.run(
        [node, "-e", program], input=given.encode(), capture_output=True, timeout=30, check=True
    )
    assert json.loads(run.stdout) == [True, False, False]
