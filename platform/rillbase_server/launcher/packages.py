"""Locates installed packages without importing them."""

from importlib.util import find_spec
from pathlib import Path


def package_directory(name: str) -> Path:
    """Return the package's directory, or a path that does not exist if it is not installed."""
    spec = find_spec(name)
    places = spec.submodule_search_locations if spec else None
    return Path(places[0]) if places else Path(f"(package {name})")
