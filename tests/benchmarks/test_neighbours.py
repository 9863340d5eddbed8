"""What the benchmark of attacks attributes to the attack."""

from __future__ import annotations

from benchmarks.support.neighbours import AttackFigures, Rounds, add_figures
from benchmarks.support.report import Report
from benchmarks.support.signed_in import Requests


def test_failures_of_rounds_without_the_attack_are_not_blamed_on_it() -> None:
    figures = AttackFigures(
        alone=Rounds([5.0, 6.0], lost=7, broken=1),
        beside=Rounds([6.0, 7.0], lost=2),
        before_mib=100,
        after_mib=100,
    )
    report = Report("stack", {})

    add_figures(report, "silent", figures, Requests())

    values = {figure.name: figure.value for figure in report.figures}
    assert values["silent_lost"] == 2
    assert values["silent_broken"] == 0
    assert values["silent_alone_failures"] == 8
