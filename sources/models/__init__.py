"""The tables of sources."""

from sources.models.source import Source

__all__ = ["Source"]
