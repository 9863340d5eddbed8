"""Whatever fails, every subscriber ends up with the answer that a query gets, and was told no lie.

Writers write in every way there is, subscribers watch random queries over all operators, and one
part of the installation after another is killed, paused or emptied. At quiet points all writers
stand still: then each subscriber has to come to hold what its query answers, and one that has been
told for a while that it is `live` has to hold it already. What the protocol forbids (a hole in
`seq`, a version twice, a document that a rule hides) ends the run whenever it happens.

A run prints its seed and its story; RILLBASE_CHAOS_SEED repeats the choices of one, and
RILLBASE_CHAOS_KILLS says how many kills the long one takes.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest
import requests

from tests.chaos.live.questions import question
from tests.chaos.live.rules import READ, Rules
from tests.chaos.live.stage import BACK_S, Stage, staged
from tests.chaos.live.story import Story
from tests.chaos.live.subscribers import Habits, Subscriber, bearer
from tests.chaos.live.writers import Gate, Writer
from tests.launched import Place
from tests.waiting import wait_until

WRITERS, SUBSCRIBERS = 4, 24
#: Writes between two kills.
WRITES = 30
KILLS_BETWEEN_QUIET_POINTS = 4
#: Whoever has been told `live` for so long, with nobody writing, has to hold the answer.
HONEST_S = 15.0
HEALED_S = 240.0
KILLS = int(os.environ.get("RILLBASE_CHAOS_KILLS", "120"))
VICTIMS = (
    "node",
    "node",
    "pause node",
    "relay",
    "pause relay",
    "web",
    "second web",
    "grid",
    "valkey",
    "empty valkey",
    "postgres",
    "worker",
)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_every_subscriber_ends_up_with_the_answer_whatever_is_killed(place: Place) -> None:
    seed = int(os.environ.get("RILLBASE_CHAOS_SEED", secrets.randbelow(10**6)))
    chance = Random(seed)
    once = [victim for victim in dict.fromkeys(VICTIMS) if victim != "worker"]
    chance.shuffle(once)
    play(place, Story(seed), chance, once, "processes")


@pytest.mark.long
@pytest.mark.timeout(KILLS * 120)
@pytest.mark.parametrize("grid", ["processes", "spark"])
def test_every_subscriber_ends_up_with_the_answer_through_many_kills(
    place: Place, grid: str
) -> None:
    seed = int(os.environ.get("RILLBASE_CHAOS_SEED", secrets.randbelow(10**6)))
    chance = Random(seed)
    victims = [*VICTIMS, "driver"] if grid == "spark" else VICTIMS
    play(place, Story(seed), chance, chance.choices(victims, k=KILLS), grid)


def play(place: Place, story: Story, chance: Random, victims: Sequence[str], grid: str) -> None:
    """Hurt these, one after the other, and look at quiet points in between."""
    try:
        with staged(place, story, chance, grid) as (stage, ready):
            play_on(Run(stage, ready, story, chance), victims)
    finally:
        story.end()
    assert not story.faults, story.faults


def play_on(run: Run, victims: Sequence[str]) -> None:
    with run.busy():
        for number, victim in enumerate(victims, start=1):
            run.write_more(WRITES)
            run.stage.hurt(victim)
            if run.chance.random() < 0.3:
                run.change_rules()
            if number % KILLS_BETWEEN_QUIET_POINTS == 0:
                run.settle()
        run.write_more(WRITES)
        run.settle()


class Run:
    """Writers and subscribers on a stage."""

    def __init__(self, stage: Stage, ready: dict[str, str], story: Story, chance: Random) -> None:
        self.stage = stage
        self.chance = chance
        self._story = story
        self._rules = Rules()
        self._key = ready["api_key"]
        self._tenant = f"{stage.urls[0]}/api/v1/tenants/{ready['tenant']}"
        self._gate = Gate(WRITERS)
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
            for number in range(SUBSCRIBERS)
        ]

    @contextmanager
    def busy(self) -> Iterator[None]:
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

    def write_more(self, writes: int) -> None:
        """Wait until so many writes were acknowledged."""
        self._look()
        wanted = self._story.counts["writes"] + writes
        wait_until(
            lambda: self._story.counts["writes"] >= wanted or bool(self._story.faults),
            what="writes to go on",
            timeout_s=HEALED_S,
        )
        self._look()

    def change_rules(self) -> None:
        self._story.tell("rules", "change")
        self._rules.change(self._bring_into_force)
        self._story.count("rules changed")

    def settle(self) -> None:
        """Stop all writes, and wait until every subscriber holds its answer."""
        self._gate.close()
        began_s = time.monotonic()
        self._story.tell("quiet", "nobody writes")
        for subscriber in self._subscribers:
            subscriber.hurry.set()
        open_ones = list(self._subscribers)

        def all_hold() -> bool:
            open_ones[:] = [one for one in open_ones if not self._holds(one, began_s)]
            self._look()
            return not open_ones

        try:
            wait_until(all_hold, what="every subscriber to hold its answer", timeout_s=HEALED_S)
        finally:
            for one in open_ones:
                self._story.tell("quiet", f"does not hold {self._answer(one.habits)}\n{one.told()}")
        self._story.tell("quiet", "all hold their answers")
        self._story.count("quiet points")
        for subscriber in self._subscribers:
            subscriber.hurry.clear()
        self._gate.open()

    def _holds(self, one: Subscriber, quiet_since_s: float) -> bool:
        answer = self._answer(one.habits)
        view = one.view()
        if answer is None:
            return False
        if view.live_since_s is not None and _rows(view.items, one) == _rows(answer, one):
            return True
        since_s = max(quiet_since_s, view.live_since_s or time.monotonic(), view.heard_s)
        if time.monotonic() - since_s > HONEST_S:
            self._story.fault(one.name, f"`live` was a lie: {_rows(answer, one)}\n{one.told()}")
        return False

    def _answer(self, habits: Habits) -> list[Any] | None:
        """Return what the query answers now; none while nobody answers."""
        url = f"{self.stage.urls[1]}/v1/collections/{habits.collection}/query"
        try:
            answer = requests.post(
                url, json=habits.question, headers=bearer(habits.credentials), timeout=BACK_S
            )
        except requests.RequestException:
            return None
        if answer.status_code >= 500:
            return None
        assert answer.status_code == 200, f"{habits}: {answer.text}"
        items: list[Any] = answer.json()["items"]
        return items

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
            f"{self._tenant}/{what}", json=body, headers=self._member, timeout=BACK_S
        )
        assert answer.status_code == 201, answer.text
        made: dict[str, Any] = answer.json()
        return made

    @property
    def _member(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._key}"}

    def _bring_into_force(self, rules: dict[str, Any]) -> None:
        """Change the rule, however often that takes."""

        def changed() -> bool:
            try:
                answer = requests.patch(
                    f"{self._tenant}/collections/ruled",
                    json={"access_rules": rules},
                    headers=self._member,
                    timeout=BACK_S,
                )
            except requests.RequestException:
                return False
            return answer.ok

        wait_until(changed, what="the rule to change", timeout_s=HEALED_S)


def _rows(items: list[Any], one: Subscriber) -> list[Any]:
    rows = [(item["id"], item["version"], item["document"]) for item in items]
    return rows if one.habits.ordered else sorted(rows, key=lambda row: str(row[0]))
