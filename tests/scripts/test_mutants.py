"""The catalogue of mutants, and what counts as noticing one."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.mutants.__main__ import failures, is_slow
from scripts.mutants.catalogue import Mutant, mutants, stale
from scripts.provision.places import ENVIRONMENT

CATALOGUE = """
[[mutant]]
name = "off-by-one"
file = "counting.py"
old = "return n + 1"
new = "return n"
fault = "The count is too small."
slow = ["test_counting.py::test_slowly"]
area = ["test_more.py"]
"""
TESTS = """
import counting


def {name}():
    assert counting.after(1) == {expected}
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with a function, two tests and a catalogue."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / "counting.py").write_text("def after(n):\n    return n + 1\n")
    (folder / "test_counting.py").write_text(TESTS.format(name="test_slowly", expected=2))
    (folder / "test_more.py").write_text("def test_quickly():\n    pass\n")
    (folder / "mutants.toml").write_text(CATALOGUE)
    (folder / ".venv").symlink_to(ENVIRONMENT)
    return folder


def mutant(checkout: Path) -> Mutant:
    (only,) = mutants(checkout / "mutants.toml")
    return only


def test_a_mutant_changes_its_text_and_nothing_else(checkout: Path) -> None:
    mutant(checkout).apply(checkout)
    assert (checkout / "counting.py").read_text() == "def after(n):\n    return n\n"


def test_a_catalogue_that_fits_the_checkout_has_no_complaints(checkout: Path) -> None:
    assert stale(checkout, checkout / "mutants.toml") == []


@pytest.mark.parametrize("text", ["return 1 + n", "return n + 1\n    return n + 1"])
def test_a_text_that_is_not_in_its_file_exactly_once_is_reported(checkout: Path, text: str) -> None:
    (checkout / "counting.py").write_text(f"def after(n):\n    {text}\n")
    (complaint,) = stale(checkout, checkout / "mutants.toml")
    assert complaint.startswith("off-by-one: ")


def test_a_test_that_is_gone_is_reported(checkout: Path) -> None:
    (checkout / "test_counting.py").write_text("")
    (checkout / "test_more.py").unlink()
    assert stale(checkout, checkout / "mutants.toml") == [
        "off-by-one: no test_counting.py::test_slowly",
        "off-by-one: no test_more.py",
    ]


def test_the_tests_that_fail_are_those_that_notice_a_mutant(checkout: Path) -> None:
    only = mutant(checkout)
    tests = [*only.area, *only.slow]
    assert failures(checkout, tests) == []
    only.apply(checkout)
    (noticing,) = failures(checkout, tests)
    assert noticing == "test_counting.py::test_slowly"
    assert is_slow(noticing, only)
    assert is_slow(f"{noticing}[1]", only)
    assert not is_slow("test_more.py::test_quickly", only)
