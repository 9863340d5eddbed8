"""Runs of pytest over a few lines of tests, for the plugins of this suite."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.environment import ROOT

#: Loading all plugins takes longer than the tests.
FEW_PLUGINS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def run_tests(
    folder: Path, source: str, *arguments: str, plugins: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a file of tests in a folder of its own, as `make test` does."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_some.py").write_text(source)
    inherited = {
        name: text for name, text in os.environ.items() if not name.startswith("PYTEST_XDIST")
    }
    own = {"PYTEST_ADDOPTS": f"-p xdist {plugins}", "PYTHONPATH": str(ROOT), "CI": ""}
    return subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        cwd=folder,
        env={**inherited, **FEW_PLUGINS, **own, **variables},
        check=False,
        capture_output=True,
        text=True,
    )
