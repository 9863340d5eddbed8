"""The version of Rillbase, as semantic versioning counts."""

from __future__ import annotations

VERSION = "0.1.0"
