"""Parses PostgreSQL arrays into nested lists of their elements' texts."""

from __future__ import annotations

import re

#: PostgreSQL's maximum number of dimensions.
MAX_DIMENSIONS = 6

#: A list of elements or of lists; None: NULL.
Nested = list["Nested | str | None"]

_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_BARE = re.compile(r"[^,}]+(?=[,}])")


def parse_array(text: str) -> Nested:
    """Parse `{1,NULL,"a b"}`, also with several dimensions, and with bounds in front."""
    start = text.index("{")
    return _ArrayParser(text, start).array()


class _ArrayParser:
    def __init__(self, text: str, at: int) -> None:
        self._text = text
        self._at = at

    def array(self) -> Nested:
        """Parse from an opening brace to just after its closing brace."""
        root: Nested = []
        open_ones = [root]
        self._at += 1
        while open_ones:
            sign = self._text[self._at]
            if sign == "{":
                if len(open_ones) == MAX_DIMENSIONS:
                    raise ValueError("an array has too many dimensions")
                inner: Nested = []
                open_ones[-1].append(inner)
                open_ones.append(inner)
                self._at += 1
            elif sign == "}":
                open_ones.pop()
                self._at += 1
            elif sign == ",":
                self._at += 1
            else:
                open_ones[-1].append(self._quoted() if sign == '"' else self._bare())
        return root

    def _quoted(self) -> str:
        match = _QUOTED.match(self._text, self._at)
        if match is None:
            raise ValueError("an array element is not terminated")
        self._at = match.end()
        return _ESCAPED.sub(r"\1", match[1])

    def _bare(self) -> str | None:
        match = _BARE.match(self._text, self._at)
        if match is None:
            raise ValueError("an array element is not terminated")
        self._at = match.end()
        return None if match[0].upper() == "NULL" else match[0]
