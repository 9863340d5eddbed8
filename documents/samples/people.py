"""The people of the to-do lists. Todos refer to them, and they refer to their cities."""

from __future__ import annotations

from documents.samples.sample import SampleCollection
from foundation.json_types import JsonObject

#: The `_id` used in the todos, the name, the `_id` of a city.
_PEOPLE = (
    ("ada", "Ada Okafor", "london"),
    ("grace", "Grace Lindqvist", "stockholm"),
    ("linus", "Linus Moreau", "lyon"),
    ("margaret", "Margaret Sato", "osaka"),
)

_DECLARATION: JsonObject = {
    "name": "people",
    "schema": {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string", "minLength": 1}, "city": {"type": "string"}},
    },
    "access_rules": {"read": True},
}


def people() -> SampleCollection:
    """Return the data set."""
    return SampleCollection(
        _DECLARATION, [{"_id": key, "name": name, "city": city} for key, name, city in _PEOPLE]
    )
