"""The mutants of `mutants.toml`: small faults, each in one place of one file."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from scripts.provision.places import CHECKOUT

CATALOGUE = Path(__file__).with_name("mutants.toml")


@dataclass(frozen=True)
class Mutant:
    """A fault, and the tests that might notice it."""

    name: str
    #: The changed file, relative to the checkout, and the text that is replaced in it.
    file: str
    old: str
    new: str
    #: What users would see.
    fault: str
    #: Node ids of slow tests that execute the changed code.
    slow: tuple[str, ...]
    #: Files and folders of the same area's other tests.
    area: tuple[str, ...]

    def apply(self, checkout: Path) -> None:
        """Write the fault into a copy of the checkout."""
        file = checkout / self.file
        file.write_text(self.changed(file.read_text()))

    def changed(self, text: str) -> str:
        """Return the file's text with the fault."""
        if text.count(self.old) != 1:
            raise ValueError(f"{self.name}: {self.file} does not contain its text exactly once")
        return text.replace(self.old, self.new)


def mutants(catalogue: Path = CATALOGUE) -> list[Mutant]:
    content = tomllib.loads(catalogue.read_text())
    return [
        Mutant(**{**entry, "slow": tuple(entry["slow"]), "area": tuple(entry["area"])})
        for entry in content["mutant"]
    ]


def stale(checkout: Path = CHECKOUT, catalogue: Path = CATALOGUE) -> list[str]:
    """Return what no longer fits the checkout: texts that are not in their file, missing tests."""
    complaints = []
    for mutant in mutants(catalogue):
        try:
            mutant.changed((checkout / mutant.file).read_text())
        except (OSError, ValueError) as error:
            complaints.append(str(error))
        tests = [*mutant.slow, *mutant.area]
        complaints += [f"{mutant.name}: no {test}" for test in tests if not _exists(checkout, test)]
    return complaints


def _exists(checkout: Path, test: str) -> bool:
    """Return whether there is a file or folder, and the function in it that a node id names."""
    file, _, function = test.partition("::")
    if not function:
        return (checkout / file).exists()
    return f"def {function.partition('[')[0]}(" in (checkout / file).read_text()
