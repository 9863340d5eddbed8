"""Renders every error as `application/problem+json`, whatever raised it."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import psycopg
from django.core.exceptions import SuspiciousOperation
from django.db import DatabaseError, InterfaceError
from django.http import Http404, HttpRequest, HttpResponse
from rest_framework import exceptions as drf
from rest_framework.response import Response

from foundation import errors, failures, metrics
from foundation.api.bodies import field_problems
from foundation.api.rendering import to_json
from foundation.request_context import request_id

PROBLEM_TYPE = "application/problem+json"

_SUSPICIOUS = "The request's host or path is not valid."

logger = logging.getLogger(__name__)


def translate(raised: Exception) -> errors.ApiError:
    """Return the public error for any exception."""
    error = _translate(raised)
    if isinstance(error, errors.StorageFull):
        metrics.STORAGE_FULL.inc()
    return error


def _translate(raised: Exception) -> errors.ApiError:
    match raised:
        case errors.ApiError():
            return raised
        case SuspiciousOperation():
            return errors.InvalidParameter(_SUSPICIOUS)
        case Http404() | drf.NotFound():
            return errors.NotFound()
        case drf.MethodNotAllowed():
            return errors.MethodNotAllowed(str(raised.detail))
        case drf.UnsupportedMediaType():
            return errors.UnsupportedMediaType(str(raised.detail))
        case drf.NotAcceptable():
            return errors.NotAcceptable()
        case drf.ValidationError():
            return errors.InvalidBody(errors=field_problems(raised.detail))
        case psycopg.Error() | DatabaseError() | InterfaceError() | OSError():
            return _of_the_environment(raised)
        case _:
            logger.error("unhandled %s", type(raised).__name__, exc_info=raised)
            return errors.Internal()


def _of_the_environment(raised: Exception) -> errors.ApiError:
    transient_error = failures.transient_error(raised)
    if transient_error is None:
        what = f"{type(raised).__name__} {failures.sqlstate_of(raised)}".rstrip()
        logger.error("unhandled %s", what, exc_info=raised)
        return errors.Internal()
    reason = (str(raised).splitlines() or [type(raised).__name__])[0]
    logger.warning("responded %s: %s", transient_error.code, reason)
    return transient_error


def handle_exception(raised: Exception, context: Mapping[str, object]) -> Response:
    """Error handler of the REST framework."""
    error = translate(raised)
    return Response(
        error.problem(request_id.get()),
        status=error.status,
        headers=error.headers,
        content_type=PROBLEM_TYPE,
    )


def problem_response(error: errors.ApiError) -> HttpResponse:
    """Render an error that was raised outside the REST framework."""
    return HttpResponse(
        to_json(error.problem(request_id.get())),
        status=error.status,
        headers=error.headers,
        content_type=PROBLEM_TYPE,
    )


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's 404 handler."""
    return problem_response(errors.NotFound("No such path."))


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's 400 handler: wrong Host header, malformed path."""
    return problem_response(errors.InvalidParameter(_SUSPICIOUS))


def server_error(request: HttpRequest) -> HttpResponse:
    """Django's 500 handler."""
    return problem_response(errors.Internal())
