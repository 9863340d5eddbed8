"""The built documentation."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.write_site_markdown import pages, write
from tests.documentation.fences import DOCS, ROOT


@pytest.fixture(scope="package")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make docs` builds it."""
    folder = tmp_path_factory.mktemp("documentation")
    shutil.copy(ROOT / "zensical.toml", folder)
    shutil.copytree(DOCS, folder / "docs")
    subprocess.run(
        [Path(sys.executable).parent / "zensical", "build", "--strict"], cwd=folder, check=True
    )
    write(folder / "site", pages(folder))
    return folder / "site"
