"""Errors of a request: its form, its conditions, and what it may use."""

from __future__ import annotations

from foundation.errors.api_error import ApiError


class MalformedJson(ApiError):
    status = 400
    code = "malformed_json"
    title = "The body is not valid JSON"


class InvalidBody(ApiError):
    status = 400
    code = "invalid_body"
    title = "The body does not have the required form"


class InvalidParameter(ApiError):
    status = 400
    code = "invalid_parameter"
    title = "A query parameter or a header is not valid"


class UnknownHost(ApiError):
    status = 400
    code = "unknown_host"
    title = "The Host header does not name a host of this server"


class MalformedRequest(ApiError):
    status = 400
    code = "malformed_request"
    title = "The request is not valid HTTP/1.1"


class InvalidCursor(ApiError):
    status = 400
    code = "invalid_cursor"
    title = "The cursor is not valid for this list"


class NotFound(ApiError):
    status = 404
    code = "not_found"
    title = "The resource does not exist or is not accessible"


class MethodNotAllowed(ApiError):
    status = 405
    code = "method_not_allowed"
    title = "The method is not allowed for this path"


class NotAcceptable(ApiError):
    status = 406
    code = "not_acceptable"
    title = "The response is not available in an accepted format"


class IdempotencyInProgress(ApiError):
    status = 409
    code = "idempotency_in_progress"
    title = "A request with the same idempotency key is still running"


class PreconditionFailed(ApiError):
    status = 412
    code = "precondition_failed"
    title = "The resource is not in the state that the request requires"


class BodyTooLarge(ApiError):
    status = 413
    code = "body_too_large"
    title = "The body is larger than allowed"


class UnsupportedMediaType(ApiError):
    status = 415
    code = "unsupported_media_type"
    title = "The body's media type is not supported"


class IdempotencyMismatch(ApiError):
    status = 422
    code = "idempotency_mismatch"
    title = "The idempotency key was used with a different request"


class QuotaExceeded(ApiError):
    status = 403
    code = "quota_exceeded"
    title = "The tenant's quota is exhausted"


class RateLimited(ApiError):
    status = 429
    code = "rate_limited"
    title = "Too many requests"


class RequestTimeout(ApiError):
    status = 408
    code = "request_timeout"
    title = "The request did not arrive in time"


class HeadersTooLarge(ApiError):
    status = 431
    code = "headers_too_large"
    title = "The request has too many or too large headers"


class InvalidOperation(ApiError):
    status = 400
    code = "invalid_operation"
    title = "The GraphQL operation is malformed, does not match the schema, or is too large"


class PersistedQueryNotFound(ApiError):
    status = 404
    code = "persisted_query_not_found"
    title = "No operation with this hash is known"
