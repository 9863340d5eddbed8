"""The documentation as the setup of a checkout builds it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from scripts.check_site import complaints
from scripts.provision import documentation
from scripts.provision.steps import SetupSteps
from tests.documentation.fences import DOCS, ROOT


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout of the documentation alone, whose site has not been built."""
    shutil.copytree(DOCS, tmp_path / "docs")
    configuration = shutil.copy(ROOT / "zensical.toml", tmp_path)
    monkeypatch.setattr(documentation, "SOURCES", tmp_path / "docs")
    monkeypatch.setattr(documentation, "CONFIGURATION", Path(configuration))
    monkeypatch.setattr(documentation, "BUILT", tmp_path / "site")
    return tmp_path


def test_the_setup_builds_the_whole_site_and_replaces_an_older_one(checkout: Path) -> None:
    assert not documentation.is_built()
    steps = SetupSteps(checkout / "setup.log")
    (checkout / "site").mkdir()
    (checkout / "site" / "removed.html").touch()
    documentation.install(steps)
    assert documentation.is_built()
    assert complaints(checkout / "site") == []
    assert not (checkout / "site" / "removed.html").exists()
    assert not (checkout / "site.partial").exists()


@pytest.mark.parametrize("name", ["docs/start.md", "docs/guide/why.svg", "zensical.toml"])
def test_any_change_of_a_source_requires_a_new_build(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(documentation, "CHECKOUT", Path("/"))
    before = documentation.made_from()
    assert documentation.made_from() == before
    with (checkout / name).open("a") as source:
        source.write("\n")
    assert documentation.made_from() != before


def test_a_broken_link_does_not_stop_the_setup(checkout: Path) -> None:
    with (checkout / "docs" / "start.md").open("a") as page:
        page.write("\n[Nowhere](nowhere.md)\n")
    documentation.install(SetupSteps(checkout / "setup.log"))
    assert documentation.is_built()
