"""Responses to requests that are rejected before any application sees them."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable
from enum import Enum
from http import HTTPStatus

from websockets.http11 import Response

from foundation.errors import (
    ApiError,
    Forbidden,
    HeadersTooLarge,
    Internal,
    MalformedRequest,
    RequestTimeout,
    Unavailable,
)

#: The errors of handshakes that the `websockets` library rejects with a text.
_HANDSHAKE_ERRORS: dict[int, type[ApiError]] = {
    HTTPStatus.BAD_REQUEST: MalformedRequest,
    HTTPStatus.FORBIDDEN: Forbidden,
    HTTPStatus.INTERNAL_SERVER_ERROR: Internal,
    HTTPStatus.SERVICE_UNAVAILABLE: Unavailable,
}


class RequestRejection(Enum):
    """The reason for a rejection; the value is its label in metrics."""

    HEAD_TOO_LARGE = "headers_too_large"
    TOO_MANY_HEADERS = "too_many_headers"
    HEAD_TIMEOUT = "header_timeout"
    BODY_TOO_SLOW = "body_too_slow"
    MALFORMED = "malformed"

    def error(self) -> ApiError:
        match self:
            case RequestRejection.HEAD_TOO_LARGE:
                return HeadersTooLarge("The headers are too large.")
            case RequestRejection.TOO_MANY_HEADERS:
                return HeadersTooLarge("There are too many headers.")
            case RequestRejection.HEAD_TIMEOUT:
                return RequestTimeout("The headers did not arrive in time.")
            case RequestRejection.BODY_TOO_SLOW:
                return RequestTimeout("The body arrives too slowly.")
            case RequestRejection.MALFORMED:
                return MalformedRequest()


def response(error: ApiError, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return a complete response that closes the connection."""
    request_id = secrets.token_hex(16)
    body = json.dumps(error.problem(request_id)).encode()
    status = HTTPStatus(error.status)
    lines = [b"HTTP/1.1 %d %s" % (status, status.phrase.encode())]
    lines += [b"%s: %s" % pair for pair in headers]
    lines += [
        b"content-type: application/problem+json",
        b"content-length: %d" % len(body),
        b"cache-control: no-store",
        b"x-request-id: %s" % request_id.encode(),
        b"connection: close",
        b"",
        body,
    ]
    return b"\r\n".join(lines)


def with_problem(rejection: Response) -> Response:
    """Return a rejection of a handshake as a problem document, unless the application wrote it."""
    make_error = _HANDSHAKE_ERRORS.get(rejection.status_code)
    if make_error is None or not rejection.headers["Content-Type"].startswith("text/plain"):
        return rejection
    request_id, detail = secrets.token_hex(16), rejection.body.decode().strip()
    error = make_error(detail) if detail else make_error()
    rejection.body = json.dumps(error.problem(request_id)).encode()
    replaced = {
        "Content-Type": "application/problem+json",
        "Content-Length": str(len(rejection.body)),
        "X-Request-Id": request_id,
    }
    for name, value in replaced.items():
        rejection.headers.pop(name, None)
        rejection.headers[name] = value
    return rejection
