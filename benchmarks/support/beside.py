"""Runs one benchmark alternately in two checkouts, this one and one of an earlier commit.

Rounds alternate (A B B A A B …), each an independent run with its own servers, started from its
checkout with that checkout's virtual environment. This checkout's code measures both, so that a
difference is one of the product; only the modules that start the servers and depend on their
internals (`OWN`) are each checkout's own. If a checkout lacks such a module, this one's is used.
Native programs are built in the checkout's `native/target`; the first build takes some minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from rich.table import Table

from benchmarks.support.report import console, median, save

ROOT = Path(__file__).resolve().parents[2]
#: Each checkout has its own version of these, and of `peers`. The other modules do not import the
#: product.
OWN = frozenset({
    "support/copying.py",
    "support/decoding.py",
    "support/durable_servers.py",
    "support/grid_node.py",
    "support/grid_run.py",
    "support/installation.py",
    "support/live_stack.py",
    "support/native.py",
    "support/own_server.py",
    "support/restartable.py",
    "support/servers.py",
})  # fmt: skip

OPTIONS = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
OPTIONS.add_argument(
    "--beside", type=Path, metavar="DIR", help="compare with another checkout, round by round"
)
OPTIONS.add_argument("--pairs", type=int, default=3, help="rounds of each checkout (3)")

#: The number of cores that other work on the machine used during a round.
OTHERS = "others_cores"
#: Above this number, rounds are not comparable: latencies grow, while CPU time per write shrinks,
#: because waiting writes are processed together.
_QUIET_CORES = 0.2

Figures = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One figure in both checkouts."""

    before: float
    after: float
    #: Per pair of rounds, after ÷ before; empty if the figure did not exist before.
    ratios: Sequence[float]

    def document(self) -> dict[str, float | None]:
        known = bool(self.ratios)
        return {
            "before": round(self.before, 4),
            "after": round(self.after, 4),
            "ratio": round(median(list(self.ratios)), 4) if known else None,
            "lowest_ratio": round(min(self.ratios), 4) if known else None,
            "highest_ratio": round(max(self.ratios), 4) if known else None,
        }


@dataclass(frozen=True, slots=True)
class Checkout:
    """A checkout in which rounds run."""

    label: str
    python: Path
    directory: Path
    environment: Mapping[str, str]

    def run(self, benchmark: str, arguments: Sequence[str]) -> Figures:
        """Run a benchmark, and return its figures."""
        done = subprocess.run(
            [str(self.python), "-m", f"benchmarks.{benchmark}", *arguments],
            cwd=self.directory,
            env=dict(self.environment),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"A round of {self.label} failed:\n{done.stderr[-4000:]}")
        figures: Figures = json.loads(done.stdout.splitlines()[-1])["figures"]
        return figures


def compared(benchmark: str) -> bool:
    """Compare the checkouts if the command line requests it; return whether it does."""
    options, arguments = OPTIONS.parse_known_args()
    if options.beside is None:
        return False
    here = Checkout(f"after ({_commit(ROOT)})", Path(sys.executable), ROOT, os.environ)
    with _before(options.beside.resolve()) as before:
        rounds = _alternate(benchmark, arguments, before, here, options.pairs)
    comparisons = compare(*rounds)
    title = (
        f"{benchmark} {' '.join(arguments)}: {before.label}, {here.label}, {options.pairs} pairs"
    )
    _show(title, comparisons)
    most = max(figures[OTHERS] for figures in (*rounds[0], *rounds[1]))
    if most > _QUIET_CORES:
        print(f"Other work used up to {most:g} cores: repeat this on a quiet machine.")
    save(
        f"{benchmark}-beside",
        {
            "benchmark": benchmark,
            "arguments": arguments,
            "before": before.label,
            "after": here.label,
            "pairs": options.pairs,
            "figures": {name: comparison.document() for name, comparison in comparisons.items()},
            "rounds": {"before": rounds[0], "after": rounds[1]},
        },
    )
    return True


def without_options(parameters: Mapping[str, object]) -> dict[str, object]:
    """Return a benchmark's own parameters."""
    mine = vars(OPTIONS.parse_args([]))
    return {name: value for name, value in parameters.items() if name not in mine}


def turns(pairs: int) -> list[bool]:
    """Return the order of the rounds, True for this checkout: pairs alternate in their order."""
    return [bool(place) == bool(pair % 2) for pair in range(pairs) for place in (0, 1)]


def compare(before: Sequence[Figures], after: Sequence[Figures]) -> dict[str, Comparison]:
    """Compare the figures that all rounds have."""
    names = [name for name in after[0] if all(name in figures for figures in (*before, *after))]
    return {
        name: Comparison(
            median([figures[name] for figures in before]),
            median([figures[name] for figures in after]),
            [a[name] / b[name] for a, b in zip(after, before, strict=True)]
            if all(figures[name] for figures in before)
            else [],
        )
        for name in names
    }


def _alternate(
    benchmark: str, arguments: Sequence[str], before: Checkout, here: Checkout, pairs: int
) -> tuple[list[Figures], list[Figures]]:
    rounds: tuple[list[Figures], list[Figures]] = ([], [])
    for number, is_here in enumerate(turns(pairs), 1):
        checkout = here if is_here else before
        begun_s, others_s = time.monotonic(), _others_cpu_s()
        figures = checkout.run(benchmark, arguments)
        took_s = time.monotonic() - begun_s
        others = (_others_cpu_s() - others_s) / took_s
        rounds[is_here].append({**figures, OTHERS: round(others, 2)})
        summary = f"{checkout.label}, {took_s:.0f} s, others used {others:.2f} cores"
        print(f"round {number} of {2 * pairs}: {summary}", file=sys.stderr)
    return rounds


def _others_cpu_s() -> float:
    """Return the CPU time of the machine except that of finished rounds."""
    machine, own = psutil.cpu_times(), os.times()
    busy_s = sum(machine) - machine.idle - machine.iowait - machine.guest - machine.guest_nice
    return float(busy_s) - own.children_user - own.children_system


@contextmanager
def _before(root: Path) -> Iterator[Checkout]:
    """Install this checkout's measuring code in another checkout for the duration of the block."""
    if not (root / "benchmarks" / "support" / "installation.py").exists():
        raise SystemExit(f"{root} is not a checkout of this repository.")
    python = root / ".venv" / "bin" / "python"
    if not python.exists():
        raise SystemExit(f"{root} is not set up: run `make setup` there.")
    with tempfile.TemporaryDirectory(prefix="rillbase-beside-") as name:
        directory = Path(name)
        for path, source in lent(ROOT / "benchmarks", root / "benchmarks").items():
            link = directory / "benchmarks" / path
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(source)
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([name, str(root), str(root / "platform")]),
        }
        if root != ROOT:
            # Cargo considers programs of the same name from two checkouts to be the same.
            environment["CARGO_TARGET_DIR"] = str(root / "native" / "target")
        yield Checkout(f"before ({_commit(root)})", python, directory, environment)


def lent(ours: Path, theirs: Path) -> dict[str, Path]:
    """Return the modules with which another checkout is measured, by path."""
    files = {str(path.relative_to(theirs)): path for path in theirs.rglob("*.py")}
    for path in ours.rglob("*.py"):
        place = str(path.relative_to(ours))
        if place not in files or not _is_own(place):
            files[place] = path
    return files


def _is_own(place: str) -> bool:
    return place in OWN or place.startswith("peers/")


def _commit(root: Path) -> str:
    command = ["git", "-C", str(root), "describe", "--always", "--dirty"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or root.name


def _show(title: str, comparisons: Mapping[str, Comparison]) -> None:
    table = Table(title=title, title_justify="left")
    table.add_column("figure", no_wrap=True)
    for column in ("before", "after", "ratio", "ratios of the pairs"):
        table.add_column(column, justify="right")
    for name, comparison in comparisons.items():
        ratios = comparison.ratios
        table.add_row(
            name,
            f"{comparison.before:,.4g}",
            f"{comparison.after:,.4g}",
            f"{median(list(ratios)):.3f}" if ratios else "",
            f"{min(ratios):.3f} … {max(ratios):.3f}" if ratios else "",
        )
    console().print(table)
