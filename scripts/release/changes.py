"""The part of the changelog that is about one version."""

from __future__ import annotations

import re
from pathlib import Path


class NoChanges(Exception):
    """The changelog has no section for the version."""


def changes(changelog: str, version: str) -> str:
    """Return the section of a version, without its heading."""
    section = re.search(
        rf"^## {re.escape(version)}(?: \([^)]*\))?\n(.*?)(?=^## |\Z)",
        changelog,
        re.MULTILINE | re.DOTALL,
    )
    if section is None or not section[1].strip():
        raise NoChanges(f"CHANGELOG.md has no section for {version}")
    return section[1].strip() + "\n"


def write(file: Path, changelog: Path, version: str) -> None:
    file.write_text(f"# Rillbase {version}\n\n{changes(changelog.read_text(), version)}")
