"""The JavaScript SDK as a package that a program installs from a clone."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.sdk.javascript import SDK, report

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A copy of what is under version control, with a compiler and nothing that was built."""
    folder = tmp_path / "js"
    folder.mkdir()
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.check_output(listed, cwd=SDK, text=True).splitlines():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SDK / name, folder / name)
    (folder / "node_modules").symlink_to((SDK / "node_modules").resolve())
    assert not (folder / "dist").exists()
    return folder


def test_a_clean_clone_can_be_installed_as_a_package(clone: Path, tmp_path: Path) -> None:
    app = tmp_path / "app"
    app.mkdir()
    (app / "package.json").write_text('{"name": "app", "private": true, "type": "module"}')
    install = ["npm", "install", "--offline", "--no-audit", "--no-fund", str(clone)]
    installed = subprocess.run(install, cwd=app, capture_output=True, text=True, check=False)
    assert installed.returncode == 0, report(installed)
    code = "import { createClient } from 'rillbase'; console.log(typeof createClient)"
    run = ["node", "--input-type=module", "--eval", code]
    ran = subprocess.run(run, cwd=app, capture_output=True, text=True, check=False)
    assert ran.stdout.strip() == "function", report(ran)
