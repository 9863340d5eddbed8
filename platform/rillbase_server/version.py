"""The version of Rillbase (semantic versioning)."""

from __future__ import annotations

VERSION = "0.1.0"
