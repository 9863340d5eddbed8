"""Rules of the suite itself."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parent


def test_fixtures_of_a_package_are_in_a_package() -> None:
    """Pytest keeps a fixture whose folder is no package until the session ends. A relay and a grid
    that stay behind take over when a later test kills its own.
    """
    declaring = [c.parent for c in TESTS.rglob("*.py") if 'scope="package"' in c.read_text()]
    for folder in declaring:
        if folder != TESTS:
            assert (folder / "__init__.py").exists(), folder
