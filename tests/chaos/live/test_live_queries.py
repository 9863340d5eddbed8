"""Whatever fails, every subscriber converges to its query's answer and never gets a false state.

Writers write through every API, subscribers follow random queries over all operators, and one part
of the installation after another is killed, paused, emptied or resized. At quiet points all writers
are idle: each subscriber must then converge to the answer of its query, and one that has been
`live` for a while must hold it already. A violation of the protocol (a gap in `seq`, a repeated
version, a document that a rule hides) fails the run at any time.

A run prints its seed and its events. RILLBASE_CHAOS_SEED repeats the choices of a run, and
RILLBASE_CHAOS_KILLS sets the number of disruptions in the long test.
"""

from __future__ import annotations

import os
import secrets
from contextlib import AbstractContextManager
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.chaos.live.installed import installed
from tests.chaos.live.run import Run, Script
from tests.chaos.live.small import small
from tests.chaos.live.story import Story
from tests.launcher_command import reachable_directory

if TYPE_CHECKING:
    from tests.chaos.live.stage import Stage
    from tests.launched import Place

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
    "resize",
)


@pytest.fixture
def story() -> Story:
    return Story(int(os.environ.get("RILLBASE_CHAOS_SEED", secrets.randbelow(10**6))))


def test_every_subscriber_ends_up_with_the_answer_whatever_is_killed(story: Story) -> None:
    chance = Random(story.seed)
    victims = list(dict.fromkeys(VICTIMS))
    chance.shuffle(victims)
    script = Script(victims, subscribers=16, writes=15, kills_between_quiet_points=7)
    with reachable_directory() as folder:
        play(small(folder, story, chance), script, story, chance)


@pytest.mark.long
@pytest.mark.timeout(KILLS * 120)
@pytest.mark.parametrize("grid", ["processes", "spark"])
def test_every_subscriber_ends_up_with_the_answer_through_many_kills(
    place: Place, story: Story, grid: str
) -> None:
    chance = Random(story.seed)
    victims = chance.choices([*VICTIMS, "driver"] if grid == "spark" else VICTIMS, k=KILLS)
    script = Script(victims, subscribers=24, writes=30, kills_between_quiet_points=4)
    play(installed(place, story, chance, grid), script, story, chance)


def play(
    stage: AbstractContextManager[Stage], script: Script, story: Story, chance: Random
) -> None:
    try:
        with stage as started:
            run = Run(started, script, story, chance)
            run.play()
    finally:
        story.end()
    run.join()
    assert not story.faults, story.faults
