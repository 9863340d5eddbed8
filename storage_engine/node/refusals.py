"""Converts errors of the storage node into errors of the API."""

from __future__ import annotations

import logging

from foundation import errors
from foundation.errors import CATALOGUE, ApiError, FieldProblem
from foundation.failures import STORAGE_RETRY_AFTER_S
from storage_engine.node.wire import CommandRejected

log = logging.getLogger(__name__)

#: The member of a request to which a code refers.
_POINTERS = {
    "INVALID_ID": "/id",
    "INVALID_AREA": "/geo",
    "INVALID_PLACE": "",
    "TOO_MANY_CELLS": "/geo",
    "LIVES_TOO_LONG": "/expires_at",
    "OUT_OF_RANGE": "",
}
#: The same codes as in the API, with capitals.
_SAME = frozenset(
    {
        "INVALID_FILTER",
        "UNSUPPORTED_OPERATOR",
        "NOT_LIVE",
        "INVALID_REGEX",
        "INVALID_EXPRESSION",
        "INVALID_SCHEMA",
        "INVALID_GEOMETRY",
        "FILTER_TOO_LARGE",
        "NESTING_TOO_DEEP",
        "INVALID_JSON",
        "INVALID_BSON",
        "DOCUMENT_TOO_LARGE",
        "EVALUATION_FAILED",
    }
)
_AT_FILTER = frozenset({"INVALID_JSON", "INVALID_BSON", "DOCUMENT_TOO_LARGE"})


def as_api_error(refused: CommandRejected) -> ApiError:
    """Return the public error."""
    code, text = refused.code, refused.text
    if code in _POINTERS:
        problem = FieldProblem(_POINTERS[code], code.lower(), text)
        return errors.InvalidBody(text, errors=[problem])
    if code in _SAME:
        pointer = "/data" if code in _AT_FILTER else "/filter"
        return CATALOGUE[code.lower()](text, errors=[FieldProblem(pointer, code.lower(), text)])
    if code == "NO_TOPIC":
        return errors.NotFound("The topic does not exist.")
    if code == "MISMATCH":
        return errors.IdempotencyMismatch(
            "The publication id was already used with a different place or different data."
        )
    if code in ("ENDED", "MALFORMED"):
        return errors.NotFound("The subscription does not exist or has ended.")
    if code == "STORAGE_FULL":
        return errors.StorageFull(
            "The storage node's disk is full, so nothing was written. Retry after the operator "
            "has freed space.",
            headers={"Retry-After": str(STORAGE_RETRY_AFTER_S)},
        )
    if code == "TOO_MANY":
        return errors.TooManySubscriptions(text)
    log.error("the storage node rejected a command: %s", refused)
    return unavailable()


def unavailable() -> ApiError:
    """Return the error for a node that does not respond."""
    return errors.Unavailable(
        "The storage node does not respond. Retry.", headers={"Retry-After": "1"}
    )
