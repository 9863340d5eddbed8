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

from tests.chaos.live.full_installation import full_installation
from tests.chaos.live.report import RunReport
from tests.chaos.live.run import Run, Script
from tests.chaos.live.small_installation import small_installation
from tests.launcher_command import reachable_directory

if TYPE_CHECKING:
    from tests.chaos.live.installation import Installation
    from tests.launcher_process import LauncherDirectory

KILLS = int(os.environ.get("RILLBASE_CHAOS_KILLS", "120"))
#: So many kinds of disruptions, by chance, in an everyday run.
FEW = 6
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
def report() -> RunReport:
    return RunReport(int(os.environ.get("RILLBASE_CHAOS_SEED", secrets.randbelow(10**6))))


def test_every_subscriber_ends_up_with_the_answer_whatever_is_killed(report: RunReport) -> None:
    rng = Random(report.seed)
    victims = list(dict.fromkeys(VICTIMS))
    rng.shuffle(victims)
    script = Script(victims[:FEW], subscribers=16, writes=15, kills_between_quiet_points=4)
    with reachable_directory() as folder:
        play(small_installation(folder, report, rng), script, report, rng)


@pytest.mark.long
@pytest.mark.timeout(KILLS * 120)
@pytest.mark.parametrize("grid", ["processes", "spark"])
def test_every_subscriber_ends_up_with_the_answer_through_many_kills(
    launcher_directory: LauncherDirectory, report: RunReport, grid: str
) -> None:
    rng = Random(report.seed)
    victims = rng.choices([*VICTIMS, "driver"] if grid == "spark" else VICTIMS, k=KILLS)
    script = Script(victims, subscribers=24, writes=30, kills_between_quiet_points=4)
    play(full_installation(launcher_directory, report, rng, grid), script, report, rng)


def play(
    installation: AbstractContextManager[Installation],
    script: Script,
    report: RunReport,
    rng: Random,
) -> None:
    try:
        with installation as started:
            run = Run(started, script, report, rng)
            run.play()
    finally:
        report.end()
    run.join()
    assert not report.faults, report.faults
