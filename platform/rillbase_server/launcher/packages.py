"""Locates installed packages without importing them."""

from importlib.util import find_spec
from pathlib import Path


def package_directory(name: str) -> Path:
    """Return the package's directory, or a path that does not exist if it is not installed."""
    spec = find_spec(name)
    locations = spec.submodule_search_locations if spec else None
    return Path(locations[0]) if locations else Path(f"(package {name})")
