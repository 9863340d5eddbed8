"""The site that is built of the documentation: `make docs`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.check_site import complaints
from tests.documentation.fences import DOCS, ROOT

PAGE = """<html><body>
<script src="https://elsewhere.example/x.js"></script>
<pre class="mermaid"></pre>
<a href="missing/">gone</a> <a href="#nowhere">nowhere</a>
<a href="#here">here</a> <p id="here"></p>
<a href="https://elsewhere.example/">a link may lead anywhere</a>
</body></html>"""


def test_every_link_of_the_site_leads_somewhere_and_nothing_is_loaded_from_elsewhere(
    tmp_path: Path,
) -> None:
    (tmp_path / "zensical.toml").write_text((ROOT / "zensical.toml").read_text())
    shutil.copytree(DOCS, tmp_path / "docs")
    subprocess.run(
        [Path(sys.executable).parent / "zensical", "build", "--strict"], cwd=tmp_path, check=True
    )
    assert complaints(tmp_path / "site") == []


def test_what_is_wrong_with_a_site_is_named(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(PAGE)
    assert complaints(tmp_path) == [
        "index.html: loads https://elsewhere.example/x.js",
        "index.html: has a diagram that requires a script from another host",
        "index.html: links to missing/, which does not exist",
        "index.html: links to #nowhere, whose anchor does not exist",
    ]


@pytest.mark.parametrize("page", sorted(DOCS.glob("**/*.md")), ids=lambda page: page.stem)
def test_every_page_is_in_the_navigation(page: Path) -> None:
    name = page.relative_to(DOCS).as_posix()
    if name.startswith("decisions/"):
        name = "decisions/index.md"  # It lists the others.
    assert f'"{name}"' in (ROOT / "zensical.toml").read_text()
