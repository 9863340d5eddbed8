"""Errors as GraphQL tells them: with the codes of the REST API."""

from __future__ import annotations

from graphql import GraphQLError

from foundation.api.problems import translate
from foundation.errors import ApiError, InvalidOperation
from foundation.json_types import JsonObject, JsonValue
from foundation.request_context import request_id
from tenants import error_log

#: Where errors of operations arise, as the error log has it.
PLACE = "GraphQL"


def formatted(error: GraphQLError) -> JsonObject:
    """Return an error as an answer's `errors` have it."""
    problem = of(_cause(error))
    if error.locations:
        places: list[JsonValue] = [
            {"line": place.line, "column": place.column} for place in error.locations
        ]
        problem["locations"] = places
    if error.path:
        problem["path"] = list(error.path)
    return problem


def of(error: ApiError) -> JsonObject:
    """Return an error that belongs to no place in the operation; the tenant's log keeps it."""
    error_log.note_refusal(error, PLACE)
    problem = error.problem(request_id.get())
    message = problem.pop("detail", None) or problem["title"]
    kept = ("code", "status", "errors", "request_id")
    extensions = {name: problem[name] for name in kept if name in problem}
    return {"message": message, "extensions": extensions}


def _cause(error: GraphQLError) -> ApiError:
    """Return what a field raised; what the library itself refuses is wrong with the operation."""
    original = error.original_error
    if isinstance(original, Exception) and not isinstance(original, GraphQLError):
        return translate(original)
    return InvalidOperation(error.message)
