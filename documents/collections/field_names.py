"""The names of collections and properties in GraphQL. They consist of letters, digits and
underscores and do not start with a digit or `__`. Two names that would become equal are rejected
when they are declared, so that everything that is declared can be queried.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from foundation.json_types import JsonValue

_FORBIDDEN = re.compile(r"[^_0-9A-Za-z]")
_ALLOWED = re.compile(r"(?!__)[_A-Za-z][_0-9A-Za-z]*\Z")

#: Root fields of every tenant's schema whose names a collection could have.
RESERVED = frozenset(
    {"count", "document", "documents", "explain", "groups", "node", "nodes"}
    | {"publications", "publish", "tenant", "tenants", "viewer"}
)


def is_name(text: str) -> bool:
    return _ALLOWED.match(text) is not None


def escaped(text: str) -> str:
    """Return the name of a property, unchanged if that is allowed."""
    name = _FORBIDDEN.sub("_", text)
    if name.startswith("__"):
        return "x" + name
    return name if is_name(name) else f"_{name}"


def of_collection(collection: str) -> str:
    """Return the root field of a collection."""
    name = collection.replace("-", "_")
    return f"{name}_" if name in RESERVED else name


def type_name(field: str) -> str:
    """Return the prefix for the types of a root field. Underscores before letters are removed and
    the letters capitalized; since fields are lower case, different fields have different names.
    """
    return re.sub(r"_([a-z])", lambda match: match[1].upper(), field[:1].upper() + field[1:])


def clash(names: Iterable[str]) -> tuple[str, str] | None:
    """Return two names that become equal."""
    seen: dict[str, str] = {}
    for name in names:
        first = seen.setdefault(escaped(name), name)
        if first != name:
            return first, name
    return None


def clashes(schema: Mapping[str, JsonValue], pointer: str) -> Iterator[tuple[str, str]]:
    """Yield the locations where a schema has two properties whose names become equal, and the
    properties.
    """
    properties = schema.get("properties")
    if isinstance(properties, dict):
        names = clash(properties)
        if names is not None:
            yield f"{pointer}/properties", " and ".join(repr(name) for name in names)
        for name, inner in properties.items():
            if isinstance(inner, dict):
                segment = name.replace("~", "~0").replace("/", "~1")
                yield from clashes(inner, f"{pointer}/properties/{segment}")
    items = schema.get("items")
    if isinstance(items, dict):
        yield from clashes(items, f"{pointer}/items")
