"""How much of a row is turned into a document: checked before, since the text of a value is smaller
than what is made of it on the way.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from foundation.environment import environment
from sources.upstream.conditions import SourceUnsuitable
from sources.upstream.pgoutput import UnchangedValue

#: A document has at most 16 MiB; `bytea` has twice its size as text.
MAX_TEXT = 2 * 16 * 1024 * 1024
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


def check_size(cells: Sequence[str | UnchangedValue | None]) -> None:
    """Refuse the cells of a row that cannot fit into a document."""
    if sum(len(cell) for cell in cells if isinstance(cell, str)) > MAX_TEXT:
        raise SourceUnsuitable(
            "document_refused", "document_too_large: A row does not fit into a document."
        )


def check_values(text: str) -> None:
    """Refuse an array, or JSON, of more values than a document may have."""
    most = environment().rillbase_max_document_values
    if _signs(text) > most and _signs(_STRING.sub("", text)) > most:
        raise SourceUnsuitable(
            "document_refused",
            f"document_too_complex: A value consists of more than {most} values.",
        )


def _signs(text: str) -> int:
    """Return at least how many values there are, but for one."""
    return text.count(",") + text.count("[") + text.count("{")
