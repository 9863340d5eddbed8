"""Errors become `application/problem+json` here, whatever raised them."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import psycopg
from django.core.exceptions import SuspiciousOperation
from django.db import DatabaseError, InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from rest_framework import exceptions as drf
from rest_framework.response import Response

from foundation import errors
from foundation.api.bodies import field_problems
from foundation.api.rendering import to_json
from foundation.request_context import request_id

PROBLEM_TYPE = "application/problem+json"

_SUSPICIOUS = "The request's host or path is not valid."

logger = logging.getLogger(__name__)

#: SQLSTATE → what it means to a caller. Everything else of the database is our fault.
_BY_SQLSTATE: Mapping[str, type[errors.ApiError]] = {
    "57014": errors.Unavailable,  # statement timeout
    "55P03": errors.Unavailable,  # lock timeout
    "40P01": errors.Unavailable,  # deadlock
    "40001": errors.Unavailable,  # serialization failure
    "53300": errors.Unavailable,  # too many connections
    "57P01": errors.Unavailable,  # server shutting down
}


def translate(raised: Exception) -> errors.ApiError:
    """Return the public error for any exception."""
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
        case psycopg.Error():
            return _translate_sqlstate(raised, raised.sqlstate)
        case OperationalError() | InterfaceError() | DatabaseError():
            return _translate_sqlstate(raised, getattr(raised.__cause__, "sqlstate", None))
        case _:
            logger.error("unhandled %s", type(raised).__name__, exc_info=raised)
            return errors.Internal()


#: Raised without an SQLSTATE when the connection is gone, or none could be had.
_AWAY = (OperationalError, InterfaceError, psycopg.OperationalError, psycopg.InterfaceError)


def _translate_sqlstate(raised: Exception, sqlstate: str | None) -> errors.ApiError:
    known = _BY_SQLSTATE.get(sqlstate or "")
    if known is None and isinstance(raised, _AWAY) and not sqlstate:
        known = errors.Unavailable
    if known is None:
        logger.error("unhandled database error %s", sqlstate, exc_info=raised)
        return errors.Internal()
    logger.warning("database unavailable: %s", str(raised).splitlines()[0])
    return known("The database did not answer in time. Try again.", headers={"Retry-After": "1"})


def handle_exception(raised: Exception, context: Mapping[str, object]) -> Response:
    """Answer for the REST framework."""
    error = translate(raised)
    return Response(
        error.problem(request_id.get()),
        status=error.status,
        headers=error.headers,
        content_type=PROBLEM_TYPE,
    )


def problem_response(error: errors.ApiError) -> HttpResponse:
    """Answer outside the REST framework."""
    return HttpResponse(
        to_json(error.problem(request_id.get())),
        status=error.status,
        headers=error.headers,
        content_type=PROBLEM_TYPE,
    )


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's 404 handler."""
    return problem_response(errors.NotFound("There is nothing at this address."))


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's 400 handler: wrong Host header, malformed path."""
    return problem_response(errors.InvalidParameter(_SUSPICIOUS))


def server_error(request: HttpRequest) -> HttpResponse:
    """Django's 500 handler."""
    return problem_response(errors.Internal())
