"""Arrays, as PostgreSQL writes them, as nested lists of its elements' texts."""

from __future__ import annotations

#: A list of elements or of lists; None: NULL.
Nested = list["Nested | str | None"]


def parse_array(text: str) -> Nested:
    """Read `{1,NULL,"a b"}`, also with several dimensions, and with bounds in front of it."""
    start = text.index("{")
    return _Reader(text, start).array()


class _Reader:
    def __init__(self, text: str, at: int) -> None:
        self._text = text
        self._at = at

    def array(self) -> Nested:
        """Read from an opening brace to behind the one that closes it."""
        root: Nested = []
        open_ones = [root]
        self._at += 1
        while open_ones:
            sign = self._text[self._at]
            if sign == "{":
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
        parts, text, at = list[str](), self._text, self._at + 1
        while text[at] != '"':
            if text[at] == "\\":
                at += 1
            parts.append(text[at])
            at += 1
        self._at = at + 1
        return "".join(parts)

    def _bare(self) -> str | None:
        text, start = self._text, self._at
        while self._text[self._at] not in ",}":
            self._at += 1
        found = text[start : self._at]
        return None if found.upper() == "NULL" else found
