"""Every process is killed in turn for minutes, under load: nothing acknowledged is lost.

Writers change a tenant repeatedly. Each change has its own idempotency key, and is retried until it
is acknowledged. At the end the audit log has each acknowledged change once, the tenant's webhook
has received each of them, and limits are still enforced. RILLBASE_SOAK_S is the duration in
seconds.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from http import HTTPStatus

import pytest
import requests

from foundation.json_types import JsonObject
from tests.launcher_command import processes_below
from tests.launcher_process import LauncherDirectory, RunningLauncher, sign_in
from tests.tenants.webhooks.receivers import WebhookReceiver, webhook_receiver
from tests.waiting import wait_until

SOAK_S = int(os.environ.get("RILLBASE_SOAK_S", "180"))
#: A message whose worker died is delivered again after five minutes, and a sweep runs every five
#: minutes.
DELIVERED_WITHIN_S = 900
VICTIMS = ("web", "worker", "valkey", "postgres", "background", "launcher")
WRITERS = 3
#: The pause between two changes of a writer, so that the tenant's rate limit is not reached.
PAUSE_S = 0.2
SLUG = "soaked"

pytestmark = [pytest.mark.long, pytest.mark.timeout(SOAK_S + DELIVERED_WITHIN_S + 600)]


@dataclass
class Load:
    """Writers of one tenant, which follow the server to its current address."""

    url: str
    token: str
    acknowledged: list[str] = field(default_factory=list)
    failures: Counter[str] = field(default_factory=Counter)
    over: threading.Event = field(default_factory=threading.Event)

    def call(
        self, method: str, path: str, body: JsonObject | None = None, key: str = ""
    ) -> requests.Response:
        headers = {"Authorization": f"Bearer {self.token}"}
        if key:
            headers["Idempotency-Key"] = key
        return requests.request(method, self.url + path, json=body, headers=headers, timeout=60)

    def write(self, writer: int) -> None:
        """Change the tenant's name until the load is over."""
        for number in itertools.count():
            if self.over.wait(PAUSE_S):
                return
            name = f"{writer}-{number}"
            while not self._changed(name):
                if self.over.wait(PAUSE_S):
                    return
            self.acknowledged.append(name)

    def _changed(self, name: str) -> bool:
        try:
            answer = self.call("PATCH", f"/api/v1/tenants/{SLUG}", {"name": name}, key=name)
        except requests.RequestException as away:
            self.failures[type(away).__name__] += 1
            return False
        if answer.status_code == HTTPStatus.OK:
            assert answer.json()["name"] == name
            return True
        self.failures[answer.json()["code"]] += 1
        return False

    def audited(self) -> Iterator[str]:
        """Return the names in the audit log, one for each entry."""
        cursor = ""
        while True:
            path = f"/api/v1/tenants/{SLUG}/audit-log?limit=100&action=tenant.updated{cursor}"
            page = self.call("GET", path).json()
            yield from (item["after"]["name"] for item in page["items"])
            if page["next_cursor"] is None:
                return
            cursor = f"&cursor={page['next_cursor']}"


@pytest.fixture
def receiver() -> Iterator[WebhookReceiver]:
    with webhook_receiver() as running:
        yield running


def kill(launcher_directory: LauncherDirectory, launched: RunningLauncher, victim: str) -> None:
    """Kill a process, and wait until it has been replaced."""
    if victim == "launcher":
        launched.process.send_signal(signal.SIGKILL)
        launched.process.wait()
        return
    pid = launcher_directory.services()[victim]["pid"]
    os.kill(pid, signal.SIGKILL)

    def is_back() -> bool:
        service = launcher_directory.services()[victim]
        return bool(service["state"] == "ready" and service["pid"] != pid)

    wait_until(is_back, what=f"{victim} to be back", timeout_s=60)


def test_nothing_that_was_acknowledged_is_lost_whatever_is_killed(
    launcher_directory: LauncherDirectory, receiver: WebhookReceiver
) -> None:
    rng = random.Random(20261121)
    with launcher_directory.up() as launched:
        load = Load(launched.ready["url"], sign_in(launched.ready))
        assert load.call("POST", "/api/v1/tenants", {"slug": SLUG, "name": "first"}).ok
        hook: JsonObject = {"name": "watch", "url": receiver.url, "events": ["tenant.updated"]}
        hooks = f"/api/v1/tenants/{SLUG}/webhooks"
        assert load.call("POST", hooks, hook).ok
        wait_until(
            lambda: load.call("GET", hooks).json()["items"][0]["state"] == "active",
            what="the handshake",
            timeout_s=60,
        )
        launched.process.send_signal(signal.SIGKILL)
        launched.process.wait()

    writers = [threading.Thread(target=load.write, args=(number,)) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    rounds = _soak(launcher_directory, load, rng)
    load.over.set()
    for writer in writers:
        writer.join()

    assert len(load.acknowledged) > 2 * SOAK_S / 10
    with launcher_directory.up() as launched:
        load.url = launched.ready["url"]
        _check_audit_log(load)
        _check_deliveries(load, receiver)
        _check_limits(load)
    assert processes_below(launcher_directory.data) == []
    print(f"{rounds} kills, {len(load.acknowledged)} changes, failures: {dict(load.failures)}")  # noqa: T201


def _soak(launcher_directory: LauncherDirectory, load: Load, rng: random.Random) -> int:
    """Kill one process after another until the time is over; return the number of kills."""
    deadline, rounds = time.monotonic() + SOAK_S, 0
    while time.monotonic() < deadline:
        with launcher_directory.up() as launched:
            load.url = launched.ready["url"]
            victim = ""
            while victim != "launcher" and time.monotonic() < deadline:
                before = len(load.acknowledged)
                wait_until(
                    lambda before=before: len(load.acknowledged) > before,  # type: ignore[misc]
                    what="a change to be acknowledged",
                    timeout_s=60,
                )
                victim = rng.choice(VICTIMS)
                kill(launcher_directory, launched, victim)
                rounds += 1
    return rounds


def _check_audit_log(load: Load) -> None:
    """Check that each acknowledged change is present once. Unacknowledged changes may be present
    too.
    """
    audited = Counter(load.audited())
    assert set(load.acknowledged) <= set(audited)
    assert [name for name, times in audited.items() if times > 1] == []
    assert len(audited) <= len(load.acknowledged) + WRITERS


def _check_deliveries(load: Load, receiver: WebhookReceiver) -> None:
    def delivered_types() -> set[object]:
        return {
            m.event["data"]["after"]["name"]  # type: ignore[index]
            for m in list(receiver.messages)
            if m.event["type"] == "tenant.updated"
        }

    wait_until(
        lambda: set(load.acknowledged) <= delivered_types(),
        what="the webhook to be told of every change",
        timeout_s=DELIVERED_WITHIN_S,
    )


def _check_limits(load: Load) -> None:
    """Check that calls beyond the tenant's burst of 200 and its rate of 50 a second are rejected
    without failing.
    """
    statuses: Counter[int] = Counter()
    begin = time.monotonic()
    while not statuses[429] and sum(statuses.values()) < 2000:
        statuses[load.call("GET", f"/api/v1/tenants/{SLUG}").status_code] += 1
    seconds = time.monotonic() - begin
    assert set(statuses) == {200, 429}
    assert statuses[200] <= 200 + 50 * seconds + 1
