"""Formats errors for GraphQL, with the codes of the REST API."""

from __future__ import annotations

from graphql import GraphQLError

from foundation.api.problems import translate
from foundation.errors import ApiError, InvalidOperation
from foundation.json_types import JsonObject, JsonValue
from foundation.request_context import request_id
from tenants import error_log

#: The location of operations' errors in the error log.
LOCATION = "GraphQL"


def formatted(error: GraphQLError) -> JsonObject:
    """Format an error for the `errors` of a response."""
    problem = of(_cause(error))
    if error.locations:
        locations: list[JsonValue] = [
            {"line": location.line, "column": location.column} for location in error.locations
        ]
        problem["locations"] = locations
    if error.path:
        problem["path"] = list(error.path)
    return problem


def of(error: ApiError) -> JsonObject:
    """Format an error without a location in the operation, and note it in the error log."""
    error_log.note_refusal(error, LOCATION)
    problem = error.problem(request_id.get())
    message = problem.pop("detail", None) or problem["title"]
    names = ("code", "status", "errors", "request_id")
    extensions = {name: problem[name] for name in names if name in problem}
    return {"message": message, "extensions": extensions}


def _cause(error: GraphQLError) -> ApiError:
    """Return a field's exception. Errors of the library are invalid operations."""
    original = error.original_error
    if isinstance(original, Exception) and not isinstance(original, GraphQLError):
        return translate(original)
    return InvalidOperation(error.message)
