"""How the entries of an index are stored."""

from __future__ import annotations

from enum import StrEnum


class DeclaredTechnique(StrEnum):
    """The technique of an index. Unique indexes, and all of PostgreSQL, are composite."""

    #: Rillbase chooses.
    AUTO = "auto"
    #: By entry and document.
    COMPOSITE = "composite"
    #: By entry and the time of the document's last change.
    LAZY = "lazy"
    #: One list of documents per entry.
    EAGER = "eager"
    #: Without entries: tables record which values the documents in them have.
    EMBEDDED = "embedded"

    @property
    def chosen(self) -> DeclaredTechnique:
        """The technique that is used."""
        return DeclaredTechnique.COMPOSITE if self is DeclaredTechnique.AUTO else self
