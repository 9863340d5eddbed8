"""The cells of a row as PostgreSQL sends them, and limits of their size, checked before conversion.

The text of a value is smaller than the intermediate objects made from it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum

from foundation.environment import environment
from sources.conditions import SourceUnsuitable

#: A document has at most 16 MiB; `bytea` has twice its size as text.
MAX_TEXT = 2 * 16 * 1024 * 1024
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


class UnchangedValue(Enum):
    """Replaces a large value that an update left unchanged, which PostgreSQL does not send."""

    UNCHANGED = "unchanged"


UNCHANGED = UnchangedValue.UNCHANGED
#: By column; None: NULL.
Cells = Sequence[str | UnchangedValue | None]


def check_size(cells: Cells) -> None:
    """Reject the cells of a row that cannot fit into a document."""
    if sum(len(cell) for cell in cells if isinstance(cell, str)) > MAX_TEXT:
        raise SourceUnsuitable(
            "document_refused", "document_too_large: A row does not fit into a document."
        )


def check_values(text: str) -> None:
    """Reject an array, or JSON, with more values than a document may have."""
    max_values = environment().rillbase_max_document_values
    if _signs(text) > max_values and _signs(_STRING.sub("", text)) > max_values:
        raise SourceUnsuitable(
            "document_refused",
            f"document_too_complex: A value consists of more than {max_values} values.",
        )


def _signs(text: str) -> int:
    """Return a lower bound of the number of values, less one."""
    return text.count(",") + text.count("[") + text.count("{")
