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
    def initial(self) -> DeclaredTechnique:
        """The technique of a new index."""
        return DeclaredTechnique.COMPOSITE if self is DeclaredTechnique.AUTO else self

    def permits(self, technique: DeclaredTechnique) -> bool:
        """Return whether an index with this declaration may have a technique. Eager indexes are
        never chosen automatically: their writes cost most.
        """
        if self is DeclaredTechnique.AUTO:
            return technique is not DeclaredTechnique.EAGER
        return technique is self


DECLARED_TECHNIQUES = tuple(DeclaredTechnique)
#: What the technique of an index can be, once it is chosen.
TECHNIQUES = tuple(one for one in DeclaredTechnique if one is not DeclaredTechnique.AUTO)
