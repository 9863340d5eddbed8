"""Where an installed package lies, found without importing it."""

from importlib.util import find_spec
from pathlib import Path


def package_directory(name: str) -> Path:
    """The package's directory; for one that is not installed, a path that does not exist."""
    spec = find_spec(name)
    places = spec.submodule_search_locations if spec else None
    return Path(places[0]) if places else Path(f"(package {name})")
