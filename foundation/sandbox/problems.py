"""Errors of the API that a worker reports and the server raises."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypedDict, cast

from foundation.errors import ApiError, FieldProblem
from foundation.json_types import JsonObject

_MAX_DETAIL_CHARS = 1_000
_MAX_ERRORS = 100


class _Field(TypedDict):
    pointer: str
    code: str
    detail: str


class _Problem(TypedDict):
    code: str
    detail: str
    errors: list[_Field]


def problem_json(error: ApiError) -> JsonObject:
    """Return an error as a worker reports it."""
    errors = [
        {
            "pointer": problem.pointer,
            "code": problem.code,
            "detail": problem.detail[:_MAX_DETAIL_CHARS],
        }
        for problem in error.errors[:_MAX_ERRORS]
    ]
    return {
        "code": error.code,
        "detail": error.detail[:_MAX_DETAIL_CHARS],
        "errors": cast("list[object]", errors),  # type: ignore[dict-item]
    }


def reported(problem: object, kinds: Iterable[type[ApiError]]) -> ApiError:
    """Return the error that a worker has reported, which is one of these kinds."""
    members = cast("_Problem", problem)
    errors = [FieldProblem(e["pointer"], e["code"], e["detail"]) for e in members["errors"]]
    by_code = {kind.code: kind for kind in kinds}
    return by_code[members["code"]](members["detail"], errors=errors)
