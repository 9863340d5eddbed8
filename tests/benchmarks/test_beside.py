"""Comparing two checkouts: which code runs, in which order, and with which result."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.support import beside
from benchmarks.support.beside import Comparison, compare, lent, turns

BENCHMARKS = beside.ROOT / "benchmarks"
COMPARED = ("aggregates", "documents", "graphql", "grid", "stack")
PRODUCT = {
    *("aggregates", "analytics", "documents", "foundation", "realtime", "rillbase_native"),
    *("rillbase_server", "sources", "storage_engine", "tenants", "tests"),
}


def test_rounds_alternate_so_that_neither_checkout_is_always_first() -> None:
    assert turns(3) == [True, False, False, True, True, False]


def test_a_ratio_is_the_median_of_the_pairs_ratios() -> None:
    before = [{"ms": 1.0}, {"ms": 2.0}, {"ms": 10.0}]
    after = [{"ms": 1.5}, {"ms": 2.0}, {"ms": 5.0}]

    assert compare(before, after)["ms"].document() == {
        "before": 2.0,
        "after": 2.0,
        "ratio": 1.0,
        "lowest_ratio": 0.5,
        "highest_ratio": 1.5,
    }


def test_results_of_only_one_checkout_are_omitted_and_nothing_is_divided_by_zero() -> None:
    result = compare([{"lost": 0, "old": 1}], [{"lost": 3, "new": 1}])

    assert result == {"lost": Comparison(0, 3, [])}


def test_what_starts_the_servers_is_each_checkouts_own_and_what_measures_them_is_lent(
    tmp_path: Path,
) -> None:
    for place in ("stack.py", "support/installation.py", "support/forgotten.py"):
        file = tmp_path / place
        file.parent.mkdir(exist_ok=True)
        file.touch()

    result = lent(BENCHMARKS, tmp_path)

    assert result["stack.py"] == BENCHMARKS / "stack.py"
    assert result["support/installation.py"] == tmp_path / "support/installation.py"
    assert result["support/servers.py"] == BENCHMARKS / "support/servers.py"
    assert result["support/forgotten.py"] == tmp_path / "support/forgotten.py"


@pytest.mark.parametrize("benchmark", COMPARED)
def test_what_is_lent_to_another_commit_imports_nothing_of_the_product(benchmark: str) -> None:
    waiting, seen = [f"{benchmark}.py"], set[str]()
    while waiting:
        place = waiting.pop()
        if place in seen or place in beside.OWN or place.startswith("peers/"):
            continue
        seen.add(place)
        for module in _imports(BENCHMARKS / place):
            assert module.partition(".")[0] not in PRODUCT, f"{place} imports {module}"
            inside = module.removeprefix("benchmarks.").replace(".", "/") + ".py"
            if (BENCHMARKS / inside).exists():
                waiting.append(inside)

    assert "support/beside.py" in seen


def test_a_checkout_that_is_not_set_up_is_named(tmp_path: Path) -> None:
    (tmp_path / "benchmarks/support").mkdir(parents=True)
    (tmp_path / "benchmarks/support/installation.py").touch()

    done = _run("stack", tmp_path)

    assert done.returncode == 1
    assert f"{tmp_path} is not set up: run `make setup` there." in done.stderr


@pytest.mark.timeout(900)
def test_a_benchmark_of_a_checkout_beside_itself_has_the_figures_of_both() -> None:
    knobs = ["--unoptimised", "--queries", "50", "--writes", "100", "--seconds", "1"]

    done = _run("grid", beside.ROOT, "--pairs", "1", *knobs)

    assert done.returncode == 0, done.stderr
    last = json.loads(done.stdout.splitlines()[-1])
    figure = last["figures"]["range_50_queries_100_writes_1x2_writes_per_s"]
    assert figure["before"] > 0
    assert figure["after"] > 0
    assert last["pairs"] == 1


def _imports(file: Path) -> list[str]:
    """Return the modules that a file imports, and `module.name` for each name from one."""
    imported = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            imported += [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported += [node.module, *(f"{node.module}.{name.name}" for name in node.names)]
    return imported


def _run(benchmark: str, checkout: Path, *knobs: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", f"benchmarks.{benchmark}", "--beside", str(checkout), *knobs]
    return subprocess.run(command, capture_output=True, text=True, check=False)
