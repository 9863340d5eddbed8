"""A search in the documentation's text, `llms-full.txt`."""

from __future__ import annotations

import re

MAX_SECTIONS, MAX_SECTION_CHARACTERS = 6, 5_000
_PAGE = re.compile(
    r'<page title="(?P<title>.*?)" path="(?P<path>.*?)">\n(?P<text>.*?)\n</page>', re.DOTALL
)
_HEADING = re.compile(r"^(?=#{2,3} )", re.MULTILINE)
_WORD = re.compile(r"\w+")


def search(manual: str, query: str) -> str:
    """Return the sections that contain the most of the words, and contain them most densely."""
    words = {word.lower() for word in _WORD.findall(query)}
    scored = [
        (score, f"<!-- {page['path']} -->\n{section[:MAX_SECTION_CHARACTERS].strip()}")
        for page in _PAGE.finditer(manual)
        for section in _HEADING.split(page["text"])
        if (score := _score(words, section))[0]
    ]
    scored.sort(key=lambda entry: entry[0], reverse=True)
    return "\n\n".join(text for _, text in scored[:MAX_SECTIONS]) or "No section has these words."


def _score(words: set[str], section: str) -> tuple[int, int, float]:
    contained = [word.lower() for word in _WORD.findall(section)]
    heading = {word.lower() for word in _WORD.findall(section.partition("\n")[0])}
    hits = sum(word in words for word in contained)
    return len(words.intersection(contained)), len(words & heading), hits / max(len(contained), 1)
