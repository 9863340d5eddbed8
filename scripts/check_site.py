"""Check the built documentation site: every link has a target, and no page loads resources from
other hosts.

python -m scripts.check_site [site]

A link has a target if its file exists and, if there is a #, contains that id. Pages may link to
other hosts, which is not checked, but every resource that a page loads has to be part of the site.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "site"
#: Elements that load a resource, and the attribute that names it.
LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
#: Kinds of `link` that load nothing.
NAMES = frozenset({"canonical", "prev", "next"})


@dataclass
class SitePage(HTMLParser):
    """The links, resources and anchors of a page."""

    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    #: The site generator renders these with a script from another host, so no page may contain one.
    diagrams: int = 0

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.ids.update(attributes[name] for name in ("id", "name") if name in attributes)
        if tag == "a" and "href" in attributes:
            self.links.append(attributes["href"])
        if tag in LOADS and LOADS[tag] in attributes and attributes.get("rel") not in NAMES:
            self.loads.append(attributes[LOADS[tag]])
        self.diagrams += "mermaid" in attributes.get("class", "").split()


def complaints(site: Path) -> list[str]:
    """Return the problems of a site."""
    pages = {path: _read(path) for path in sorted(site.rglob("*.html"))}
    if not pages:
        return [f"{site} contains no page"]
    return [
        f"{path.relative_to(site)}: {what}"
        for path, page in pages.items()
        for what in _wrong(site, path, page, pages)
    ]


def _read(path: Path) -> SitePage:
    page = SitePage()
    page.feed(path.read_text())
    return page


def _wrong(site: Path, path: Path, page: SitePage, pages: dict[Path, SitePage]) -> Iterator[str]:
    for address in page.loads:
        if urlsplit(address).netloc:
            yield f"loads {address}"
    if page.diagrams:
        yield "has a diagram that requires a script from another host"
    # The 404 page uses paths from the server's root.
    root = site if path.name == "404.html" else path.parent
    for address in [*page.links, *page.loads]:
        parts = urlsplit(address)
        if parts.scheme or parts.netloc:
            continue
        target = _target(root, path, unquote(parts.path), site)
        if target is None:
            yield f"links to {address}, which does not exist"
        elif parts.fragment and target in pages and not _is_place(pages[target], parts.fragment):
            yield f"links to {address}, whose anchor does not exist"


def _is_place(page: SitePage, fragment: str) -> bool:
    return unquote(fragment) in page.ids


def _target(root: Path, path: Path, address: str, site: Path) -> Path | None:
    if not address:
        return path
    target = (site / address[1:] if address.startswith("/") else root / address).resolve()
    target = target / "index.html" if target.is_dir() else target
    return target if target.is_file() else None


def main() -> int:
    """Print the problems; return how many there are."""
    site = Path(sys.argv[1]) if len(sys.argv) > 1 else SITE
    problems = complaints(site.resolve())
    for complaint in problems:
        print(complaint, file=sys.stderr)
    return len(problems)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
