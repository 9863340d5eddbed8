"""The output of figures: a table for people, one line of JSON for programs, and a file."""

from __future__ import annotations

import json
import operator
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

#: Relative to the running code, even if links lend it to another checkout.
RESULTS = Path(__file__).absolute().parents[1] / "results"

#: Width of a table outside a terminal.
_WIDTH = 160

_COMPARE: Mapping[str, Callable[[float, float], bool]] = {">=": operator.ge, "<=": operator.le}


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number, and its goal."""

    name: str
    value: float
    unit: str
    what: str
    want: str = ""

    @property
    def holds(self) -> bool | None:
        """Return whether the goal is met; None without a goal."""
        if not self.want:
            return None
        sign, _, bound = self.want.partition(" ")
        return _COMPARE[sign](self.value, float(bound))


@dataclass
class Report:
    """The figures of one benchmark run."""

    benchmark: str
    params: dict[str, object]
    figures: list[Figure] = field(default_factory=list)

    def add(self, name: str, value: float, unit: str, what: str, want: str = "") -> None:
        """Record a figure; `want` is a goal such as ">= 700"."""
        self.figures.append(Figure(name, round(value, 4), unit, what, want))

    def finish(self) -> None:
        """Print the table, save the raw figures, print the line of JSON."""
        table = Table(title=f"{self.benchmark}  ({_machine()})", title_justify="left")
        for column in ("figure", "value", "goal", "holds", "what"):
            table.add_column(
                column,
                justify="right" if column == "value" else "left",
                no_wrap=column == "figure",
            )
        for f in self.figures:
            mark = {None: "", True: "[green]yes", False: "[red]no"}[f.holds]
            table.add_row(f.name, f"{f.value:,.4g} {f.unit}", f.want, mark, f.what)
        console().print(table)
        save(self.benchmark, self._document())

    def _document(self) -> dict[str, object]:
        return {
            "benchmark": self.benchmark,
            "params": self.params,
            "figures": {f.name: f.value for f in self.figures},
            "goals": {
                f.name: {"want": f.want, "got": f.value, "holds": f.holds}
                for f in self.figures
                if f.want
            },
        }


def console() -> Console:
    """Return the console for tables: a wide one outside a terminal."""
    terminal = Console()
    return terminal if terminal.is_terminal else Console(width=_WIDTH)


def save(name: str, document: Mapping[str, object]) -> None:
    """Save the figures in a file, and print them as the last line."""
    line = json.dumps(document, separators=(",", ":"))
    RESULTS.mkdir(exist_ok=True)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    (RESULTS / f"{name}-{stamp}.json").write_text(line + "\n")
    print(line, flush=True)


def _machine() -> str:
    return f"{psutil.cpu_count()} cores, Python {platform.python_version()}"


def median(values: list[float]) -> float:
    """Return the median."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def percentile(values: list[float], share: float) -> float:
    """Return the value below which `share` of all values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
