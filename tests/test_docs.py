"""The documentation matches the code."""

from __future__ import annotations

import re
from pathlib import Path

from foundation.errors import CATALOGUE
from scripts.write_settings_doc import PAGE as SETTINGS_PAGE
from scripts.write_settings_doc import page as settings_page

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"\]\(([^)#:]+\.md)(?:#[^)]*)?\)")


def test_every_error_is_described_with_its_status() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| (\d+) \|", (ROOT / "docs/errors.md").read_text(), re.MULTILINE
    )
    assert {code: int(status) for code, status in rows} == {
        code: error.status for code, error in CATALOGUE.items()
    }


def test_the_settings_page_is_up_to_date() -> None:
    assert SETTINGS_PAGE.read_text() == settings_page(), (
        "run `python -m scripts.write_settings_doc`"
    )


def test_every_direct_dependency_has_its_reason() -> None:
    words = set(re.findall(r"[a-z0-9-]+", (ROOT / "docs/dependencies.md").read_text().lower()))
    for name in ("server", "runtime", "spark", "dev", "bootstrap"):
        requirements = (ROOT / f"requirements/{name}.in").read_text()
        direct = re.findall(r"^([A-Za-z][\w.-]*)", requirements, re.MULTILINE)
        assert {package.lower() for package in direct} <= words


def test_the_security_model_names_tests_that_exist() -> None:
    named = re.findall(r"`(tests/[^`]+)`", (ROOT / "docs/security.md").read_text())
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_links_between_pages_have_a_target() -> None:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    broken = [
        f"{source.relative_to(ROOT)} -> {target}"
        for source in pages
        for target in LINK.findall(source.read_text())
        if not (source.parent / target).resolve().exists()
    ]
    assert broken == []
