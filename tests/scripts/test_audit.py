"""Advisories about dependencies, from a database that the test makes."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from scripts.audit import ShippedPackage, applies, audit, dependencies

DJANGO = ShippedPackage("PyPI", "django", "5.2.19")


def advisory(*events: dict[str, str], name: str = "Django", **members: Any) -> dict[str, Any]:
    affected = {
        "package": {"ecosystem": "PyPI", "name": name},
        "ranges": [{"type": "ECOSYSTEM", "events": list(events)}],
    }
    return {"id": "PYSEC-1", "modified": "2026-11-01T00:00:00Z", "affected": [affected]} | members


@pytest.mark.parametrize(
    ("events", "is_affected"),
    [
        ([{"introduced": "0"}], True),
        ([{"introduced": "0"}, {"fixed": "5.2.19"}], False),
        ([{"introduced": "0"}, {"fixed": "5.2.20"}], True),
        ([{"introduced": "5.2"}, {"last_affected": "5.2.19"}], True),
        ([{"introduced": "5.2"}, {"last_affected": "5.2.18"}], False),
        ([{"introduced": "5.2.20"}], False),
        ([{"introduced": "6.0a1"}, {"fixed": "6.0.1"}], False),
        ([{"fixed": "4.2.1"}, {"introduced": "0"}, {"introduced": "5.0"}], True),
        (
            [{"introduced": "0"}, {"fixed": "4.2.1"}, {"introduced": "5.0"}, {"fixed": "5.2.1"}],
            False,
        ),
    ],
)
def test_an_advisory_applies_to_the_versions_of_its_ranges(
    *, events: list[dict[str, str]], is_affected: bool
) -> None:
    assert applies(advisory(*events), DJANGO) is is_affected


def test_an_advisory_applies_to_the_versions_that_it_lists() -> None:
    listed = {"package": {"ecosystem": "PyPI", "name": "django"}, "versions": ["5.2.19"]}
    assert applies({"id": "PYSEC-2", "affected": [listed]}, DJANGO)


def test_other_packages_and_ecosystems_and_withdrawn_advisories_do_not_count() -> None:
    always = {"introduced": "0"}
    assert not applies(advisory(always, name="django-other"), DJANGO)
    assert not applies(advisory(always), ShippedPackage("npm", "django", "5.2.19"))
    assert not applies(advisory(always, withdrawn="2026-11-02T00:00:00Z"), DJANGO)


def test_pre_releases_precede_their_release_in_every_ecosystem() -> None:
    crate = {
        "package": {"ecosystem": "crates.io", "name": "mio"},
        "ranges": [{"type": "SEMVER", "events": [{"introduced": "0.0.0-0"}, {"fixed": "1.0.0"}]}],
    }
    assert applies(
        {"id": "RUSTSEC-1", "affected": [crate]}, ShippedPackage("crates.io", "mio", "0.9.1")
    )
    assert not applies(
        {"id": "R", "affected": [crate]}, ShippedPackage("crates.io", "mio", "1.0.0")
    )


def test_an_audit_reports_what_it_checked_and_what_applies(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("PYSEC-1.json", json.dumps(advisory({"introduced": "0"}, summary="Bad.")))
    report = audit([DJANGO, ShippedPackage("npm", "react", "19.0.0")], tmp_path)
    assert report.lines == [
        "PyPI: 1 packages, checked against 1 advisories",
        "crates.io: 0 packages, not checked: " + f"{tmp_path} has no advisories",
        "npm: 1 packages, not checked: " + f"{tmp_path} has no advisories",
        "The newest advisory is of 2026-11-01T00:00:00Z.",
    ]
    assert report.complaints == ["django 5.2.19: PYSEC-1 Bad."]


def test_without_a_database_the_report_says_that_nothing_was_checked(tmp_path: Path) -> None:
    report = audit([DJANGO], tmp_path / "missing")
    assert report.lines[-1] == "Nothing was checked."
    assert report.complaints == []


def test_everything_that_ships_is_looked_up() -> None:
    listed = dependencies()
    names = {(item.ecosystem, item.name) for item in listed}
    assert {("PyPI", "django"), ("crates.io", "pyo3"), ("npm", "react")} <= names
    assert ("PyPI", "pytest") not in names
