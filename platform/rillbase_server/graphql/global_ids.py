"""Ids that are unique in the whole schema, as Relay requires."""

from __future__ import annotations

from foundation.errors import ApiError, FieldProblem, InvalidBody
from foundation.json_types import JsonValue
from rillbase_server.graphql import opaque
from rillbase_server.graphql.context import Reference, reference


def write(collection: str, key: JsonValue) -> str:
    """Return the global id of a document."""
    return opaque.write([collection, key])


def read(text: str) -> Reference:
    """Return the collection and key in a global id, or raise `InvalidBody`."""
    try:
        match opaque.read(text):
            case [str(collection), key]:
                return reference(collection, key)
            case _:
                pass
    except (opaque.InvalidOpaqueText, ApiError):
        pass
    problem = FieldProblem("/id", "invalid", "The id was not issued by this API.")
    raise InvalidBody(errors=[problem])
