"""The parts of the long suite, as `make test-long` would run them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable

import pytest

from scripts.provision.places import CHECKOUT

#: In two pieces, so that this file does not contain it.
LONG = "pytest.mark" + ".long"


@pytest.fixture(scope="module")
def commands() -> list[list[str]]:
    """The commands of all parts."""
    dry_run = ["make", "--dry-run", "--no-print-directory", "test-long"]
    printed = subprocess.run(dry_run, cwd=CHECKOUT, check=True, capture_output=True, text=True)
    return [line.split() for line in printed.stdout.splitlines()]


def files_with(text: str, pattern: str) -> Iterable[str]:
    """Return the checkout's files, relative to it, that contain a text."""
    for file in sorted(CHECKOUT.glob(pattern)):
        if text in file.read_text():
            yield str(file.relative_to(CHECKOUT))


def test_every_long_test_is_in_one_part(commands: list[list[str]]) -> None:
    folders = [word for words in commands for word in words if word.startswith("tests/")]
    for name in files_with(LONG, "tests/*/**/test_*.py"):
        holding = [folder for folder in folders if name.startswith(f"{folder}/")]
        assert len(holding) == 1, (name, holding)
    assert not list(files_with(LONG, "tests/test_*.py")), "in no part"


def test_every_crate_with_long_tests_is_in_one_part(commands: list[list[str]]) -> None:
    text = "\n".join(" ".join(words) for words in commands)
    crates = sorted(re.findall(r"--package rillbase-([a-z-]+)", text))
    found = {name.split("/")[1] for name in files_with("#[ignore", "native/*/**/*.rs")}
    assert crates == sorted(name.replace("_", "-") for name in found)
