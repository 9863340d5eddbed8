"""Paths of the checkout, its environment, and the cache shared by all checkouts."""

from __future__ import annotations

import os
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
REQUIREMENTS = CHECKOUT / "requirements"
NATIVE = CHECKOUT / "native"
ENVIRONMENT = CHECKOUT / ".venv"
ENVIRONMENT_PYTHON = ENVIRONMENT / "bin" / "python"


def cache() -> Path:
    """Return the cache folder. It may be deleted at any time."""
    chosen = os.environ.get("RILLBASE_CACHE_DIR")
    if chosen:
        return Path(chosen).expanduser().resolve()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().resolve() / "rillbase"


def cargo_target() -> Path:
    return cache() / "target"
