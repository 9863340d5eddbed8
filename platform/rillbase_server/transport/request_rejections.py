"""Responses to requests that are rejected before any application sees them."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable
from enum import Enum
from http import HTTPStatus

from foundation.errors import ApiError, HeadersTooLarge, MalformedRequest, RequestTimeout


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
