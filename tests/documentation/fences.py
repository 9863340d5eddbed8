"""The fenced blocks of the documentation's pages, and what their first lines say about them.

Behind the language, in braces, stand attributes:

data-not-run  why the example cannot be run here
data-until    the example goes on for ever; it is ended once its output has this text
data-refused  how many of its calls the server refuses, as the page says
data-is       what a block of JSON is: the `answer` to the request before it, the `messages` that a
              client sends over a WebSocket, the `frames` that the server sends, the `variables`
              of the GraphQL operation before it, the `claims` of the token `eyJ…` of the requests
              after it, or an `alternative` to the request before it; of a block of text: the
              `output` of the program before it
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
#: What is looked at and not run: pictures, formats, settings. Sessions (`console`) have a test of
#: their own, which plays them.
SHOWN = frozenset({"", "text", "console", "yaml"})
#: What the examples of a page are run as.
RUN = frozenset({"sh", "http", "json", "graphql", "sql", "python", "js"})

_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>[\w-]*) *(?:\{(?P<attributes>[^\n]*)\})?\n"
    r"(?P<text>.*?)^(?P=indent)```$",
    re.DOTALL | re.MULTILINE,
)
_ATTRIBUTE = re.compile(r'data-([a-z-]+)="([^"]*)"')


@dataclass(frozen=True)
class Fence:
    """A fenced block."""

    page: Path
    line: int
    language: str
    attributes: Mapping[str, str]
    text: str

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def pages() -> list[Path]:
    """Return every page but the tour, whose own test pastes it into a shell."""
    return sorted(page for page in DOCS.glob("**/*.md") if page.name != "tour.md")


def fences(page: Path) -> list[Fence]:
    """Return a page's blocks, in their order."""
    source = page.read_text()
    return [
        Fence(
            page,
            source.count("\n", 0, match.start()) + 1,
            match["language"],
            dict(_ATTRIBUTE.findall(match["attributes"] or "")),
            dedent(match["text"]),
        )
        for match in _FENCE.finditer(source)
    ]


def examples(page: Path) -> list[Fence]:
    """Return those of a page's blocks that are run or compared."""
    return [
        fence
        for fence in fences(page)
        if (fence.language not in SHOWN or fence.attributes.get("is") == "output")
        and "not-run" not in fence.attributes
    ]
