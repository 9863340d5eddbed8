"""Where the documents of a collection are stored."""

from __future__ import annotations

from enum import StrEnum


class Backend(StrEnum):
    """The storage of a collection's documents, as the API names it."""

    POSTGRES = "postgres"
    #: The storage node.
    NATIVE = "native"
