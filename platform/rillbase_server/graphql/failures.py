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
    original = error.original_error
    api = translate(original) if isinstance(original, Exception) else _of_the_operation(error)
    problem = of(api)
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


def _of_the_operation(error: GraphQLError) -> ApiError:
    return InvalidOperation(error.message)
