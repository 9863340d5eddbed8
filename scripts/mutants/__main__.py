"""Which tests notice each mutant: ``python -m scripts.mutants [NAME…]``.

A mutant is applied to a copy of the checkout, in which the area's fast tests run until one fails.
If all pass, the slow tests run. A test counts only if it passes without the mutant. A slow test
that alone notices a mutant stays in the everyday suite; the others may move to the long one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from scripts.mutants.catalogue import Mutant, mutants, stale
from scripts.provision.places import CHECKOUT

#: What the setup makes and tests use; links in the copy.
MADE = (
    ".venv",
    "site",
    "console/dist",
    "console/node_modules",
    "sdk/js/dist",
    "sdk/js/node_modules",
)
TEST_TIMEOUT_S = 120
EVERY_TEST = ["every test"]
#: Also the long suite's tests.
EVERY_SUITE = ("-m", "")


@contextmanager
def copy() -> Iterator[Path]:
    """Copy the checkout's files, committed or not."""
    list_files = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(
        list_files, cwd=CHECKOUT, check=True, capture_output=True, text=True
    ).stdout
    with tempfile.TemporaryDirectory(prefix="rillbase-mutant-") as folder:
        for name in filter(None, listed.split("\0")):
            target = Path(folder, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            if (CHECKOUT / name).is_file():
                shutil.copy(CHECKOUT / name, target)
        for name in MADE:
            Path(folder, name).symlink_to(CHECKOUT / name)
        yield Path(folder)


def failures(checkout: Path, tests: Sequence[str], *options: str) -> list[str]:
    """Run tests; return the node ids of those that fail."""
    done = subprocess.run(
        [
            ".venv/bin/pytest",
            "--quiet",
            "--no-header",
            "--tb=no",
            "-p",
            "no:cacheprovider",
            f"--timeout={TEST_TIMEOUT_S}",
            "-rfE",
            *options,
            *tests,
        ],
        cwd=checkout,
        env={name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"},
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
    if done.returncode and not found:
        # The mutant ended pytest itself, or the tests could not be collected.
        return [] if done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED else EVERY_TEST
    return sorted(set(found))


def notices(mutant: Mutant) -> list[str]:
    """Return the tests that notice a mutant: one fast one, or all slow ones."""
    with copy() as checkout:
        mutant.apply(checkout)
        slow = [f"--deselect={test}" for test in mutant.slow]
        found = failures(checkout, mutant.area, "-x", *slow) if mutant.area else []
        if not found and mutant.slow:
            found = failures(checkout, mutant.slow, *EVERY_SUITE)
    flaky = set(failures(CHECKOUT, found, *EVERY_SUITE)) if found and found != EVERY_TEST else set()
    return [test for test in found if test not in flaky]


def main(names: Sequence[str]) -> None:
    if complaints := stale():
        sys.exit("\n".join(complaints))
    for mutant in mutants():
        if names and mutant.name not in names:
            continue
        begun = time.monotonic()
        found = notices(mutant)
        print(f"{mutant.name} ({time.monotonic() - begun:.0f} s)")
        for test in found or ["no test"]:
            note = ", and no other test" if len(found) == 1 and is_slow(test, mutant) else ""
            print(f"    noticed by {test}{note}")
        sys.stdout.flush()


def is_slow(test: str, mutant: Mutant) -> bool:
    return test.partition("[")[0] in {slow.partition("[")[0] for slow in mutant.slow}


if __name__ == "__main__":
    main(sys.argv[1:])
