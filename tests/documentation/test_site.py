"""The site that is built of the documentation: `make docs`."""

from __future__ import annotations

import json
import re
import tomllib
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


def test_every_link_of_the_site_works_and_nothing_is_loaded_from_other_servers(
    site: Path,
) -> None:
    assert complaints(site) == []


def test_llms_txt_lists_every_page_in_the_order_of_the_navigation(site: Path) -> None:
    text = (site / "llms.txt").read_text()
    title, summary = text.split("\n\n")[:2]
    assert title == "# Rillbase"
    assert summary.startswith("> Rillbase is a real-time Database-as-a-Service.")
    assert "\n" not in summary
    listed = re.findall(r"^- \[.+?\]\((\S+)\): .{12,}\.$", text, re.MULTILINE)
    assert len(listed) == text.count("\n- ")
    start, *sections = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"]
    entries = [entry for section in sections for part in section.values() for entry in part]
    paths = [path for entry in [start, *entries] for path in entry.values()]
    assert listed[: len(paths)] == paths
    assert sorted(listed) == sorted(
        path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")
    )
    titles = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert titles == [*(title for section in sections for title in section), "Optional"]


@pytest.mark.parametrize("source", sorted(DOCS.rglob("*.md")), ids=lambda source: source.stem)
def test_a_page_has_its_source_at_the_same_address(source: Path, site: Path) -> None:
    path = source.relative_to(DOCS)
    html = site / path.parent / ("" if path.stem == "index" else path.stem) / "index.html"
    links = re.findall(r'<link rel="alternate" type="text/markdown" href="(.+)">', html.read_text())
    assert [(html.parent / link).resolve() for link in links] == [site / path]
    assert (site / path).read_text() == source.read_text()
    assert source.read_text() in (site / "llms-full.txt").read_text()
    for link in re.findall(r"\]\(([^)#:]+)[^):]*\)", source.read_text()):
        assert (site / path.parent / link).is_file(), f"{path} links to {link}"


def test_the_pages_that_the_console_links_to_exist(site: Path) -> None:
    targets = json.loads((ROOT / "console/src/shell/docs-pages.json").read_text())
    for target in targets.values():
        page, _, anchor = target.partition("#")
        html = (site / page / "index.html").read_text()
        assert not anchor or f'id="{anchor}"' in html, target


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
