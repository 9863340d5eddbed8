"""Writers and subscribers of an installation, and quiet points, at which nothing is written."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

import requests

from tests.chaos.live.installation import Installation
from tests.chaos.live.random_queries import random_query
from tests.chaos.live.report import RunReport
from tests.chaos.live.rules import READ, Rules
from tests.chaos.live.subscribers import Habits, Subscriber, bearer
from tests.chaos.live.writers import Gate, Writer
from tests.waiting import wait_until

WRITERS = 4
#: A subscriber that has been `live` this long without writes must hold the answer.
LIVE_GRACE_S = 15.0
RECOVERY_S = 240.0
ANSWER_S = 120.0
#: Delay between two checks at a quiet point, because each check queries the busy servers.
POLL_S = 0.25


@dataclass(frozen=True)
class Script:
    """The victims of a run, and the load."""

    victims: Sequence[str]
    subscribers: int
    #: Acknowledged writes between two disruptions.
    writes: int
    kills_between_quiet_points: int


class Run:
    """Writers and subscribers of an installation."""

    def __init__(
        self, installation: Installation, script: Script, report: RunReport, rng: Random
    ) -> None:
        self._installation = installation
        self._script = script
        self._rng = rng
        self._report = report
        self._rules = Rules()
        self._key = installation.key
        self._gate = Gate(WRITERS)
        self._between_checks = threading.Event()
        self._make("collections", {"name": "open"})
        self._make("collections", {"name": "ruled", "access_rules": {"read": READ[0]}})
        anonymous = {"name": "page", "kind": "publishable", "scopes": ["documents:read"]}
        self._anonymous = str(self._make("api-keys", anonymous)["key"])
        self._writers = [
            Writer(number, installation.urls, self._key, self._gate, self._rules, report)
            for number in range(WRITERS)
        ]
        self._subscribers = [
            Subscriber(number, self._habits(number), installation.urls, self._rules, report)
            for number in range(script.subscribers)
        ]

    def play(self) -> None:
        """Disrupt the victims one after the other, and check the answers at quiet points."""
        script = self._script
        with self._running_clients():
            self._wait_for_subscribers()
            for number, victim in enumerate(script.victims, start=1):
                self._write_more(script.writes)
                self._installation.disrupt(victim)
                if self._rng.random() < 0.3:
                    self._change_rules()
                if number % script.kills_between_quiet_points == 0:
                    self._settle()
            self._write_more(script.writes)
            self._settle()

    def join(self) -> None:
        """Wait for all clients to stop, which they do once no server answers."""
        for one in (*self._subscribers, *self._writers):
            one.join()

    @contextmanager
    def _running_clients(self) -> Iterator[None]:
        """Run all writers and subscribers during the block."""
        for one in (*self._subscribers, *self._writers):
            one.start()
        try:
            yield
        finally:
            self._gate.end()
            for subscriber in self._subscribers:
                subscriber.over.set()
                subscriber.hurry.set()

    def _wait_for_subscribers(self) -> None:
        """Wait until every subscriber was live once, before the first disruption."""
        waiting = list(self._subscribers)

        def all_live() -> bool:
            # Restless subscribers may have disconnected since.
            waiting[:] = [one for one in waiting if one.view().live_since_s is None]
            return not waiting or bool(self._report.faults)

        wait_until(all_live, what="every subscriber to be live", timeout_s=RECOVERY_S)
        self._check_faults()

    def _write_more(self, writes: int) -> None:
        """Wait until that many more writes are acknowledged."""
        self._check_faults()
        target = self._report.counts["writes"] + writes
        wait_until(
            lambda: self._report.counts["writes"] >= target or bool(self._report.faults),
            what="writes to continue",
            timeout_s=RECOVERY_S,
        )
        self._check_faults()

    def _change_rules(self) -> None:
        self._report.record("rules", "change")
        self._rules.change(self._put_into_force)
        self._report.count("rules changed")

    def _settle(self) -> None:
        """Stop all writes, and wait until every subscriber holds its answer."""
        self._gate.close()
        began_s = time.monotonic()
        self._report.record("quiet", "no writer writes")
        for subscriber in self._subscribers:
            subscriber.hurry.set()
        pending = list(self._subscribers)
        try:
            while pending:
                pending = [one for one in pending if not self._holds_answer(one, began_s)]
                self._check_faults()
                late = time.monotonic() - began_s > RECOVERY_S
                assert not late, f"{len(pending)} subscribers do not hold their answers"
                self._between_checks.wait(POLL_S if pending else 0)
        finally:
            for one in pending:
                self._report.record(
                    "quiet", f"does not hold {self._answer(one.habits)}\n{one.transcript()}"
                )
        self._report.record("quiet", "all hold their answers")
        self._report.count("quiet points")
        for subscriber in self._subscribers:
            subscriber.hurry.clear()
        self._gate.open()

    def _holds_answer(self, one: Subscriber, quiet_since_s: float) -> bool:
        view = one.view()
        if view.live_since_s is None:
            return False
        answer = self._answer(one.habits)
        if answer is None:
            return False
        if _rows(view.items, one) == _rows(answer, one):
            return True
        since_s = max(quiet_since_s, view.live_since_s, view.received_s)
        if time.monotonic() - since_s > LIVE_GRACE_S:
            problem = f"`live` without the answer {_rows(answer, one)}\n{one.transcript()}"
            self._report.fault(one.name, problem)
        return False

    def _answer(self, habits: Habits) -> list[Any] | None:
        """Return the current answer of the query; none while the server is unavailable."""
        url = f"{self._installation.urls[1]}/v1/collections/{habits.collection}/query"
        try:
            answer = requests.post(
                url, json=habits.query, headers=bearer(habits.credentials), timeout=ANSWER_S
            )
        except requests.RequestException:
            return None
        if answer.status_code >= 500:
            return None
        assert answer.status_code == 200, f"{habits}: {answer.text}"
        rows: list[Any] = answer.json()["rows" if "group" in habits.query else "items"]
        return rows

    def _check_faults(self) -> None:
        assert not self._report.faults, self._report.faults[0]

    def _habits(self, number: int) -> Habits:
        rng = Random(f"{self._report.seed} habits {number}")
        anonymous = number % 4 == 0
        query = random_query(rng)
        options: dict[str, Any] = {}
        if anonymous:
            query.pop("projection", None)
        if rng.random() < 0.2:
            options["deliver"] = "result"
        if rng.random() < 0.25:
            options["throttle_ms"] = rng.choice([100, 800])
        return Habits(
            collection="ruled" if anonymous or rng.random() < 0.3 else "open",
            query=query,
            credentials={"key": self._anonymous} if anonymous else {"token": self._key},
            options=options,
            by_events=rng.random() < 0.3,
            slow=rng.random() < 0.2,
            restless=rng.random() < 0.4,
            anonymous=anonymous,
        )

    def _make(self, what: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = requests.post(
            f"{self._tenant()}/{what}", json=body, headers=self._member, timeout=ANSWER_S
        )
        assert answer.status_code == 201, answer.text
        created: dict[str, Any] = answer.json()
        return created

    def _tenant(self) -> str:
        url = self._rng.choice(self._installation.urls)
        return f"{url}/api/v1/tenants/{self._installation.tenant}"

    @property
    def _member(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._key}"}

    def _put_into_force(self, rules: dict[str, Any]) -> None:
        """Change the rule, with as many attempts as that takes."""

        def is_changed() -> bool:
            try:
                answer = requests.patch(
                    f"{self._tenant()}/collections/ruled",
                    json={"access_rules": rules},
                    headers=self._member,
                    timeout=ANSWER_S,
                )
            except requests.RequestException:
                return False
            return answer.ok

        wait_until(is_changed, what="the rule to change", timeout_s=RECOVERY_S)


def _rows(items: list[Any], one: Subscriber) -> list[str]:
    """Return rows as JSON text, in which 1 and true differ."""
    rows = [json.dumps([item["id"], item["version"], item["document"]]) for item in items]
    return rows if one.habits.ordered else sorted(rows)
