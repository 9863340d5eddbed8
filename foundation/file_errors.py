"""How errors of records in files name a place and quote a value, for imports and uploads."""

from __future__ import annotations

import json

#: The most characters of a value that an error quotes.
MAX_QUOTED_CHARS = 40


def place_in_file(place: tuple[int, int], line: int, column: int) -> tuple[int, int]:
    """Return the place in a file of a place in a text that begins at this line and column."""
    in_text, at = place
    return line + in_text - 1, at + (column - 1 if in_text == 1 else 0)


def received(kind: str, text: str) -> str:
    """Return what was received; `text` is that of a string, or the JSON of another value."""
    if kind in ("object", "array"):
        return f"got an {kind}"
    shown = _shortened(text)
    return f"got {json.dumps(shown, ensure_ascii=False) if kind == 'string' else shown}"


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_QUOTED_CHARS else f"{text[:MAX_QUOTED_CHARS]}…"
