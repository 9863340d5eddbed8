"""Writers and subscribers on a stage, and the moments at which nobody writes."""

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

from tests.chaos.live.questions import question
from tests.chaos.live.rules import READ, Rules
from tests.chaos.live.stage import Stage
from tests.chaos.live.story import Story
from tests.chaos.live.subscribers import Habits, Subscriber, bearer
from tests.chaos.live.writers import Gate, Writer
from tests.waiting import wait_until

WRITERS = 4
#: Whoever has been told `live` for so long, with nobody writing, has to hold the answer.
HONEST_S = 15.0
HEALED_S = 240.0
ANSWER_S = 120.0
#: Between two looks at a quiet point: each asks the servers, who have enough to do.
LOOK_S = 0.25


@dataclass(frozen=True)
class Script:
    """What happens in a run."""

    victims: Sequence[str]
    subscribers: int
    #: Acknowledged writes between two kills.
    writes: int
    kills_between_quiet_points: int


class Run:
    """Writers and subscribers on a stage."""

    def __init__(self, stage: Stage, script: Script, story: Story, chance: Random) -> None:
        self._stage = stage
        self._script = script
        self._chance = chance
        self._story = story
        self._rules = Rules()
        self._key = stage.key
        self._gate = Gate(WRITERS)
        self._between_looks = threading.Event()
        self._make("collections", {"name": "open"})
        self._make("collections", {"name": "ruled", "access_rules": {"read": READ[0]}})
        anonymous = {"name": "page", "kind": "publishable", "scopes": ["documents:read"]}
        self._anonymous = str(self._make("api-keys", anonymous)["key"])
        self._writers = [
            Writer(number, stage.urls, self._key, self._gate, self._rules, story)
            for number in range(WRITERS)
        ]
        self._subscribers = [
            Subscriber(number, self._habits(number), stage.urls, self._rules, story)
            for number in range(script.subscribers)
        ]

    def play(self) -> None:
        """Hurt all victims, one after the other, and look at quiet points in between."""
        script = self._script
        with self._busy():
            self._until_all_watch()
            for number, victim in enumerate(script.victims, start=1):
                self._write_more(script.writes)
                self._stage.hurt(victim)
                if self._chance.random() < 0.3:
                    self._change_rules()
                if number % script.kills_between_quiet_points == 0:
                    self._settle()
            self._write_more(script.writes)
            self._settle()

    def join(self) -> None:
        """Wait until nobody is at work any more, which is when no server answers."""
        for one in (*self._subscribers, *self._writers):
            one.join()

    @contextmanager
    def _busy(self) -> Iterator[None]:
        """Have everybody at work."""
        for one in (*self._subscribers, *self._writers):
            one.start()
        try:
            yield
        finally:
            self._gate.end()
            for subscriber in self._subscribers:
                subscriber.over.set()
                subscriber.hurry.set()

    def _until_all_watch(self) -> None:
        """Let nothing be hurt before it has worked."""
        waiting = list(self._subscribers)

        def nobody_waits() -> bool:
            # Restless ones may have left again.
            waiting[:] = [one for one in waiting if one.view().live_since_s is None]
            return not waiting or bool(self._story.faults)

        wait_until(nobody_waits, what="every subscriber to be live", timeout_s=HEALED_S)
        self._look()

    def _write_more(self, writes: int) -> None:
        """Wait until so many writes were acknowledged."""
        self._look()
        wanted = self._story.counts["writes"] + writes
        wait_until(
            lambda: self._story.counts["writes"] >= wanted or bool(self._story.faults),
            what="writes to go on",
            timeout_s=HEALED_S,
        )
        self._look()

    def _change_rules(self) -> None:
        self._story.tell("rules", "change")
        self._rules.change(self._bring_into_force)
        self._story.count("rules changed")

    def _settle(self) -> None:
        """Stop all writes, and wait until every subscriber holds its answer."""
        self._gate.close()
        began_s = time.monotonic()
        self._story.tell("quiet", "nobody writes")
        for subscriber in self._subscribers:
            subscriber.hurry.set()
        open_ones = list(self._subscribers)
        try:
            while open_ones:
                open_ones = [one for one in open_ones if not self._holds(one, began_s)]
                self._look()
                late = time.monotonic() - began_s > HEALED_S
                assert not late, f"{len(open_ones)} subscribers did not come to hold their answers"
                self._between_looks.wait(LOOK_S if open_ones else 0)
        finally:
            for one in open_ones:
                self._story.tell("quiet", f"does not hold {self._answer(one.habits)}\n{one.told()}")
        self._story.tell("quiet", "all hold their answers")
        self._story.count("quiet points")
        for subscriber in self._subscribers:
            subscriber.hurry.clear()
        self._gate.open()

    def _holds(self, one: Subscriber, quiet_since_s: float) -> bool:
        view = one.view()
        if view.live_since_s is None:
            return False
        answer = self._answer(one.habits)
        if answer is None:
            return False
        if _rows(view.items, one) == _rows(answer, one):
            return True
        since_s = max(quiet_since_s, view.live_since_s, view.heard_s)
        if time.monotonic() - since_s > HONEST_S:
            self._story.fault(one.name, f"`live` was a lie: {_rows(answer, one)}\n{one.told()}")
        return False

    def _answer(self, habits: Habits) -> list[Any] | None:
        """Return what the query answers now; none while nobody answers."""
        url = f"{self._stage.urls[1]}/v1/collections/{habits.collection}/query"
        try:
            answer = requests.post(
                url, json=habits.question, headers=bearer(habits.credentials), timeout=ANSWER_S
            )
        except requests.RequestException:
            return None
        if answer.status_code >= 500:
            return None
        assert answer.status_code == 200, f"{habits}: {answer.text}"
        found: list[Any] = answer.json()["rows" if "group" in habits.question else "items"]
        return found

    def _look(self) -> None:
        assert not self._story.faults, self._story.faults[0]

    def _habits(self, number: int) -> Habits:
        chance = Random(f"{self._story.seed} habits {number}")
        anonymous = number % 4 == 0
        asked = question(chance)
        options: dict[str, Any] = {}
        if anonymous:
            asked.pop("projection", None)
        if chance.random() < 0.2:
            options["deliver"] = "result"
        if chance.random() < 0.25:
            options["throttle_ms"] = chance.choice([100, 800])
        return Habits(
            collection="ruled" if anonymous or chance.random() < 0.3 else "open",
            question=asked,
            credentials={"key": self._anonymous} if anonymous else {"token": self._key},
            options=options,
            by_events=chance.random() < 0.3,
            slow=chance.random() < 0.2,
            restless=chance.random() < 0.4,
            anonymous=anonymous,
        )

    def _make(self, what: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = requests.post(
            f"{self._tenant()}/{what}", json=body, headers=self._member, timeout=ANSWER_S
        )
        assert answer.status_code == 201, answer.text
        made: dict[str, Any] = answer.json()
        return made

    def _tenant(self) -> str:
        return f"{self._chance.choice(self._stage.urls)}/api/v1/tenants/{self._stage.tenant}"

    @property
    def _member(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._key}"}

    def _bring_into_force(self, rules: dict[str, Any]) -> None:
        """Change the rule, however often that takes."""

        def changed() -> bool:
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

        wait_until(changed, what="the rule to change", timeout_s=HEALED_S)


def _rows(items: list[Any], one: Subscriber) -> list[str]:
    """Return rows as text, in which 1 and true differ."""
    rows = [json.dumps([item["id"], item["version"], item["document"]]) for item in items]
    return rows if one.habits.ordered else sorted(rows)
