"""The server's responses about a document, and about a change of many documents."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from rillbase.shapes import Document


@dataclass(frozen=True, slots=True)
class Envelope:
    """A document with its metadata from the server."""

    id: object
    version: int
    document: Document
    created_at: datetime | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Many:
    """The progress of a change of all documents that match a filter."""

    matched: int
    changed: int
    #: False: the time limit was reached, and the call should be repeated.
    is_complete: bool


def envelope(body: Document) -> Envelope:
    """Return a response's envelope; empty if the caller may write but not read."""
    return Envelope(
        body.get("id"),
        body.get("version", 0),
        body.get("document", {}),
        _moment(body.get("created_at")),
        _moment(body.get("updated_at")),
    )


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
