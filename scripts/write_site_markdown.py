"""Add the documentation's Markdown to the built site, for assistants and other programs.

python -m scripts.write_site_markdown [site]

Each page's source is at the URL of its HTML page, with `.md` instead of the last slash, so that its
links work unchanged; the HTML page links to it. `llms.txt` lists the pages in the form of
llmstxt.org, each with its first sentence; `llms-full.txt` contains them all.
"""

from __future__ import annotations

import os
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TypeAlias

ROOT = Path(__file__).resolve().parent.parent
#: Sections and pages of zensical.toml by their titles; a section is a navigation, a page a path.
Navigation: TypeAlias = Sequence[Mapping[str, "str | Navigation"]]

#: The section of pages outside the navigation: llmstxt.org's name for what a reader may skip.
OPTIONAL = "Optional"
#: What no paragraph of prose starts with: a heading, an image, a table, a fence or a list.
_OTHER_BLOCK = re.compile(r"#|!\[|\||```|- ")
_LABEL = re.compile(r"^\*\*\w+\.\*\* ")
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")
_SENTENCE = re.compile(r".+?(?=[.?!] |[.:?!]?$)")


@dataclass(frozen=True)
class Page:
    """A page of the documentation."""

    section: str
    title: str
    path: str
    text: str

    @property
    def entry(self) -> str:
        """The page's line of llms.txt."""
        return f"- [{self.title}]({self.path}): {first_sentence(self.text)}.\n"


def pages(root: Path) -> list[Page]:
    """Return every page of the documentation, those of the navigation first, in its order."""
    docs = root / "docs"
    project = tomllib.loads((root / "zensical.toml").read_text())["project"]
    listed = [
        Page(section, title, path, (docs / path).read_text())
        for section, title, path in _entries("", project["nav"])
    ]
    others = {str(file.relative_to(docs)) for file in docs.glob("**/*.md")}
    others -= {page.path for page in listed}
    texts = {path: (docs / path).read_text() for path in sorted(others)}
    return listed + [
        Page(OPTIONAL, text.partition("\n")[0].removeprefix("# "), path, text)
        for path, text in texts.items()
    ]


def _entries(section: str, navigation: Navigation) -> Iterator[tuple[str, str, str]]:
    for part in navigation:
        for title, content in part.items():
            if isinstance(content, str):
                yield section, title, content
            else:
                yield from _entries(title, content)


def summary(text: str) -> str:
    """Return a page's first paragraph of prose as one line without links."""
    blocks = (" ".join(block.split()) for block in text.split("\n\n"))
    prose = next(block for block in blocks if not _OTHER_BLOCK.match(block))
    return _LINK.sub(r"\1", _LABEL.sub("", prose))


def first_sentence(text: str) -> str:
    """Return the first sentence of a page's prose without its full stop."""
    prose = summary(text)
    sentence = _SENTENCE.match(prose)
    return sentence[0] if sentence else prose


def page_list(site_pages: Sequence[Page]) -> str:
    """Return llms.txt. The start page's summary is that of the site."""
    start, *others = site_pages
    head = (
        f"# {start.title}\n\n> {summary(start.text)}\n\n"
        f"All pages in one file: [llms-full.txt](llms-full.txt).\n\n{start.entry}"
    )
    sections = groupby(others, key=lambda page: page.section)
    return head + "".join(
        f"\n## {section}\n\n{''.join(page.entry for page in group)}" for section, group in sections
    )


def full_text(site_pages: Sequence[Page]) -> str:
    """Return llms-full.txt: each page in an element that names the path its links start from."""
    return "\n".join(
        f'<page title="{page.title}" path="{page.path}">\n\n{page.text}\n</page>\n'
        for page in site_pages
    )


def write(site: Path, site_pages: Sequence[Page]) -> None:
    """Add pages and their lists to a built site."""
    for page in site_pages:
        markdown = site / page.path
        markdown.parent.mkdir(parents=True, exist_ok=True)
        markdown.write_text(page.text)
        html = markdown.with_suffix("") / "index.html"
        html = markdown.with_suffix(".html") if markdown.stem == "index" else html
        address = os.path.relpath(markdown, html.parent)
        link = f'<link rel="alternate" type="text/markdown" href="{address}">'
        html.write_text(html.read_text().replace("</head>", f"{link}\n</head>", 1))
    (site / "llms.txt").write_text(page_list(site_pages))
    (site / "llms-full.txt").write_text(full_text(site_pages))


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "site", pages(ROOT))
