"""The JavaScript SDK as a package that a program installs from a clone."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.sdk.javascript import SDK, report, tool

pytestmark = pytest.mark.timeout(120)
#: By kind of module, how a program gets the function.
PROGRAMS = {
    "module": "import { createClient } from 'rillbase'",
    "commonjs": "const { createClient } = require('rillbase')",
}
#: Compressed, as the web server of a page sends it.
LARGEST_BYTES = 22 * 1024


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
    for kind, code in PROGRAMS.items():
        run = [
            "node",
            f"--input-type={kind}",
            "--eval",
            f"{code}; console.log(typeof createClient)",
        ]
        ran = subprocess.run(run, cwd=app, capture_output=True, text=True, check=False)
        assert ran.stdout.strip() == "function", report(ran)


def test_each_module_has_types_for_both_kinds_of_programs() -> None:
    exports = json.loads((SDK / "package.json").read_text())["exports"]
    for name in (".", "./react", "./node"):
        for condition, folder in (("import", "./dist/"), ("require", "./cjs/")):
            built = exports[name][condition]
            assert built["default"].startswith(folder)
            assert built["types"] == built["default"].removesuffix(".js") + ".d.ts"
            source = built["default"].removeprefix(folder).removesuffix(".js")
            assert list((SDK / "src").glob(f"{source}.ts*")), source


def test_a_page_loads_at_most_22_kib_for_it() -> None:
    bundled = subprocess.run(
        [
            *(tool("esbuild"), SDK / "dist" / "index.js", "--bundle", "--minify"),
            *("--format=esm", "--platform=browser", "--external:node:*"),
        ],
        capture_output=True,
        check=True,
    ).stdout
    assert len(gzip.compress(bundled, 9)) <= LARGEST_BYTES
