"""Converts errors of the native code into errors of the API."""

from __future__ import annotations

from foundation import errors
from foundation.errors import CATALOGUE, ApiError, FieldProblem
from rillbase_native import QueryError

_OTHER_NAMES: dict[str, type[ApiError]] = {"forbidden_by_rule": errors.Forbidden}


def as_api_error(refused: QueryError, prefix: str = "") -> ApiError:
    """Return the public error. Codes are the same on both sides; pointers get the prefix."""
    family = _OTHER_NAMES.get(refused.code) or CATALOGUE.get(refused.code, errors.InvalidDocument)
    if refused.violations:
        problems = [
            FieldProblem(prefix + pointer, refused.code, detail)
            for pointer, detail in refused.violations
        ]
    else:
        problems = [FieldProblem(prefix + refused.pointer, refused.code, refused.detail)]
    return family(refused.detail, errors=problems)
