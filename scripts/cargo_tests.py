"""Run cargo's tests, and those that fail once more, each alone.

python -m scripts.cargo_tests [--package NAME … | --workspace] [--lib --bins --tests]

A run passes if each of its failures passes alone, up to a bound (see `scripts/flaky_tests.py`).
A program of tests that ends early, such as by a signal, fails the run.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts import flaky_tests
from scripts.flaky_tests import MAX_RETRIES, TIMEOUT_S, Outcome

COMMAND = ("cargo", "test", "--manifest-path", "native/Cargo.toml", "--locked", "--quiet")
#: Options that choose programs instead of packages.
TARGETS = frozenset({"--lib", "--bins", "--tests"})
#: The last list of failures that a program prints, and cargo's line after it.
_FAILURES = re.compile(
    r"^failures:\n(?P<tests>(?:    \S.*\n)+)\n"
    r"test result: FAILED\.[^\n]*\n\s*(?:\n|warning:[^\n]*\n)*"
    r"error: test failed, to rerun pass `(?:-p (?P<package>\S+) )?(?P<target>[^`]+)`$",
    re.MULTILINE,
)
_FAILED_PROGRAM = re.compile(r"^error: test failed, to rerun pass `", re.MULTILINE)
_MESSAGE = r"^---- {test} stdout ----\n+(?:.*panicked at (?P<place>[^\n]*):\n)?(?P<message>[^\n]*)"
_PASSED = re.compile(r"^test result: ok\. (\d+) passed", re.MULTILINE)


@dataclass(frozen=True)
class CargoTest:
    """A test, and the program that has it."""

    package: str
    target: tuple[str, ...]
    """Options of cargo that choose the program: `--lib`, or `--test NAME`."""
    name: str

    def __str__(self) -> str:
        return " ".join([self.package, *self.target, self.name])


def main(arguments: Sequence[str]) -> int:
    status, output = _run([*COMMAND, "--no-fail-fast", *arguments], is_shown=True)
    if status == 0:
        return 0
    failures = list(failed_tests(output))
    if not are_retried(failures, output):
        return status
    packages = [argument for argument in arguments if argument not in TARGETS]
    outcomes = [
        Outcome(str(test), cause(test, output), _passes_alone(test, packages)) for test in failures
    ]
    earlier = flaky_tests.read(Path.cwd())
    flaky_tests.append(Path.cwd(), outcomes)
    print(*flaky_tests.summary(outcomes, earlier), sep="\n", flush=True)
    return 0 if flaky_tests.is_acceptable(outcomes, earlier) else status


def failed_tests(output: str) -> Iterator[CargoTest]:
    """Return the tests that failed, by what cargo printed."""
    for match in _FAILURES.finditer(output):
        # Cargo does not mention the package if the workspace has no other.
        package, target = match["package"] or "", tuple(shlex.split(match["target"]))
        for name in match["tests"].split():
            yield CargoTest(package, target, name)


def are_retried(failures: Sequence[CargoTest], output: str) -> bool:
    """Return whether every program that failed said which tests did, and these are few."""
    explained = len({(test.package, test.target) for test in failures})
    programs = len(_FAILED_PROGRAM.findall(output))
    return 0 < len(failures) <= MAX_RETRIES and explained == programs


def cause(test: CargoTest, output: str) -> str:
    """Return the first line of the test's panic."""
    pattern = _MESSAGE.format(test=re.escape(test.name))
    match = re.search(pattern, output, re.MULTILINE)
    if match is None:
        return "failed"
    return " ".join(part for part in (match["place"], match["message"]) if part)[:200]


def _passes_alone(test: CargoTest, packages: Sequence[str]) -> bool:
    print(f"\nRunning {test} once more, alone", flush=True)
    # Choosing the package instead would compile its dependencies with other features.
    command = [*COMMAND, *packages, *test.target, "--", "--exact", test.name]
    status, output = _run(command, is_shown=False, timeout_s=TIMEOUT_S)
    passed = status == 0 and any(int(count) for count in _PASSED.findall(output))
    if not passed:
        print(output[-20_000:], flush=True)
    return passed


def _run(
    command: Sequence[str], *, is_shown: bool, timeout_s: float | None = None
) -> tuple[int, str]:
    """Run a command; return its status and its output."""
    environment = {**os.environ, "CARGO_TERM_COLOR": "never"}
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment,
    )
    if not is_shown:
        try:
            return _wait(process, timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            return _wait(process, None)
    lines = []
    for line in process.stdout or ():
        print(line, end="", flush=True)
        lines.append(line)
    return process.wait(), "".join(lines)


def _wait(process: subprocess.Popen[str], timeout_s: float | None) -> tuple[int, str]:
    output, _ = process.communicate(timeout=timeout_s)
    return process.returncode, output


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
