"""The errors that users see.

Every error an API caller can meet is a subclass of `ApiError` with a stable `code`; the
catalogue below is the complete list and docs/errors.md describes each of its entries. Code
raises them anywhere; the edge renders them as `application/problem+json` (RFC 9457).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from foundation.json_types import JsonObject

TYPE_BASE = "urn:rillbase:error:"

#: Limits of an error response. Its texts quote input, which can be of any length.
MAX_DETAIL_CHARS, MAX_POINTER_CHARS, MAX_PLACES = 400, 200, 100

CATALOGUE: dict[str, type[ApiError]] = {}


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One offending place in the request: a JSON pointer, a stable code and a readable message."""

    pointer: str
    code: str
    detail: str


class ApiError(Exception):
    """Base of all errors that are part of the public contract.

    `errors` names the offending places; `headers` are added to the HTTP response.
    """

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal"
    title: ClassVar[str] = "Something went wrong on our side"

    def __init__(
        self,
        detail: str = "",
        *,
        errors: Iterable[FieldProblem] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail or self.title)
        self.detail = detail
        self.errors = tuple(errors)
        self.headers = dict(headers or {})
        #: Whether it has already been written to the error log.
        self.is_noted = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "code" in cls.__dict__:
            other = CATALOGUE.setdefault(cls.code, cls)
            if other is not cls and other.__qualname__ != cls.__qualname__:
                raise TypeError(f"error code {cls.code!r} is already taken by {other.__name__}")

    def problem(self, request_id: str | None = None) -> JsonObject:
        """Return the body of the response, as defined by RFC 9457."""
        body: JsonObject = {
            "type": TYPE_BASE + self.code,
            "title": self.title,
            "status": self.status,
            "code": self.code,
        }
        if self.detail:
            body["detail"] = _cut(self.detail, MAX_DETAIL_CHARS)
        if self.errors:
            body["errors"] = [
                {
                    "pointer": _cut(e.pointer, MAX_POINTER_CHARS),
                    "code": e.code,
                    "detail": _cut(e.detail, MAX_DETAIL_CHARS),
                }
                for e in self.errors[:MAX_PLACES]
            ]
        if request_id:
            body["request_id"] = request_id
        return body


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


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


class Unauthenticated(ApiError):
    status = 401
    code = "unauthenticated"
    title = "Credentials are required"


class InvalidCredentials(ApiError):
    status = 401
    code = "invalid_credentials"
    title = "The credentials are not valid"


class MalformedKey(ApiError):
    status = 401
    code = "malformed_key"
    title = "The key is mistyped or cut off"


class CredentialsExpired(ApiError):
    status = 401
    code = "credentials_expired"
    title = "The credentials have expired"


class TokenExpired(ApiError):
    status = 401
    code = "token_expired"
    title = "The token that opened the connection has expired"


class EmailNotVerified(ApiError):
    status = 403
    code = "email_not_verified"
    title = "The account's email address has not been verified"


class Forbidden(ApiError):
    status = 403
    code = "forbidden"
    title = "The caller is not allowed to do this"


class MissingScope(ApiError):
    status = 403
    code = "missing_scope"
    title = "The credentials lack the required scope"


class CsrfFailed(ApiError):
    status = 403
    code = "csrf_failed"
    title = "The CSRF token is missing or wrong"


class AddressNotAllowed(ApiError):
    status = 403
    code = "address_not_allowed"
    title = "The key may not be used from this address"


class SignUpClosed(ApiError):
    status = 403
    code = "sign_up_closed"
    title = "Sign-up is not open on this installation"


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


class Conflict(ApiError):
    status = 409
    code = "conflict"
    title = "The request conflicts with the current state"


class NameTaken(ApiError):
    status = 409
    code = "name_taken"
    title = "The name is already in use"


class LastOwner(ApiError):
    status = 409
    code = "last_owner"
    title = "A tenant must keep at least one owner"


class IdempotencyInProgress(ApiError):
    status = 409
    code = "idempotency_in_progress"
    title = "A request with the same idempotency key is still running"


class ResourceGone(ApiError):
    status = 410
    code = "gone"
    title = "The resource is no longer available"


class SnapshotExpired(ApiError):
    status = 410
    code = "snapshot_expired"
    title = "The snapshot has expired"


class SubscriptionEnded(ApiError):
    status = 410
    code = "subscription_ended"
    title = "A member of the tenant ended the subscription"


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


class NotTraceable(ApiError):
    status = 400
    code = "not_traceable"
    title = "Only live queries of documents can be explained"


class RequestTimeout(ApiError):
    status = 408
    code = "request_timeout"
    title = "The request did not arrive in time"


class HeadersTooLarge(ApiError):
    status = 431
    code = "headers_too_large"
    title = "The request has too many or too large headers"


class TooManySubscriptions(ApiError):
    status = 429
    code = "too_many_subscriptions"
    title = "The tenant or the server has too many subscriptions"


class TooManyConnections(ApiError):
    status = 429
    code = "too_many_connections"
    title = "The tenant has too many connections"


class TenantSuspended(ApiError):
    status = 403
    code = "tenant_suspended"
    title = "The tenant is suspended"


class TenantDeleted(ApiError):
    status = 410
    code = "tenant_deleted"
    title = "The tenant is being deleted"


class TargetNotAllowed(ApiError):
    status = 400
    code = "target_not_allowed"
    title = "The server may not call this URL"


class HandshakeFailed(ApiError):
    status = 400
    code = "handshake_failed"
    title = "The webhook's receiver did not complete the handshake"


class InvalidDocument(ApiError):
    status = 400
    code = "invalid_document"
    title = "The document is not accepted"


class InvalidId(ApiError):
    status = 400
    code = "invalid_id"
    title = "The _id is not accepted"


class InvalidBson(ApiError):
    status = 400
    code = "invalid_bson"
    title = "The document is not valid BSON"


class InvalidJson(ApiError):
    status = 400
    code = "invalid_json"
    title = "The text is not Extended JSON"


class DocumentTooLarge(ApiError):
    status = 413
    code = "document_too_large"
    title = "The document is too large"


class ArrayTooLong(ApiError):
    status = 413
    code = "array_too_long"
    title = "An array has too many elements"


class DocumentTooComplex(ApiError):
    status = 413
    code = "document_too_complex"
    title = "The document has too many values"


class NestingTooDeep(ApiError):
    status = 400
    code = "nesting_too_deep"
    title = "The nesting is too deep"


class InvalidFilter(ApiError):
    status = 400
    code = "invalid_filter"
    title = "The filter is not valid"


class FilterTooLarge(ApiError):
    status = 400
    code = "filter_too_large"
    title = "The filter is too large"


class UnsupportedOperator(ApiError):
    status = 400
    code = "unsupported_operator"
    title = "The operator is not supported"


class InvalidRegex(ApiError):
    status = 400
    code = "invalid_regex"
    title = "The regular expression is not accepted"


class InvalidSort(ApiError):
    status = 400
    code = "invalid_sort"
    title = "The sort is not valid"


class InvalidProjection(ApiError):
    status = 400
    code = "invalid_projection"
    title = "The projection is not valid"


class InvalidGroup(ApiError):
    status = 400
    code = "invalid_group"
    title = "The group is not valid"


class InvalidLookup(ApiError):
    status = 400
    code = "invalid_lookup"
    title = "The lookup is not valid"


class InvalidUpdate(ApiError):
    status = 400
    code = "invalid_update"
    title = "The update is not valid"


class InvalidExpression(ApiError):
    status = 400
    code = "invalid_expression"
    title = "The expression is not valid"


class InvalidSchema(ApiError):
    status = 400
    code = "invalid_schema"
    title = "The JSON Schema is not valid"


class InvalidGeometry(ApiError):
    status = 400
    code = "invalid_geometry"
    title = "The geometry is not valid"


class NotLive(ApiError):
    status = 400
    code = "not_live"
    title = "A live query cannot depend on the current time"


class QueryTooExpensive(ApiError):
    status = 422
    code = "query_too_expensive"
    title = "The query is too expensive"


class ResultTooLarge(ApiError):
    status = 422
    code = "result_too_large"
    title = "The result has too many rows for a live query"


class ResidualQuota(ApiError):
    status = 422
    code = "residual_quota"
    title = "The tenant has too many residual queries"


class Poison(ApiError):
    status = 500
    code = "poison"
    title = "A write could not be matched"


class EvaluationFailed(ApiError):
    status = 400
    code = "evaluation_failed"
    title = "An expression could not be evaluated"


class EventTooOld(ApiError):
    status = 400
    code = "event_too_old"
    title = "The event is older than the aggregate accepts"


class SumOverflow(ApiError):
    status = 400
    code = "sum_overflow"
    title = "A sum would overflow"


class TooManyValues(ApiError):
    status = 400
    code = "too_many_values"
    title = "A row has too many distinct values"


class InvalidUpload(ApiError):
    status = 400
    code = "invalid_upload"
    title = "The uploaded rows do not fit their table"


class UploadLimitExceeded(ApiError):
    status = 422
    code = "upload_limit_exceeded"
    title = "Decoding the upload exceeds its memory or time limit"


class StateExpired(ApiError):
    status = 410
    code = "state_expired"
    title = "The state is no longer retained"


class StorageFull(ApiError):
    status = 507
    code = "storage_full"
    title = "The disk is full"


class DuplicateId(ApiError):
    status = 409
    code = "duplicate_id"
    title = "A document with this _id already exists"


class DuplicateKey(ApiError):
    status = 409
    code = "duplicate_key"
    title = "Another document has the same key in a unique index"


class CollectionReadOnly(ApiError):
    status = 409
    code = "collection_read_only"
    title = "The collection is read-only: its documents come from a source"


class InvalidSource(ApiError):
    status = 400
    code = "invalid_source"
    title = "The table cannot be used as a source"


class SourceUnreachable(ApiError):
    status = 422
    code = "source_unreachable"
    title = "The source's database is unreachable"


class InvalidOperation(ApiError):
    status = 400
    code = "invalid_operation"
    title = "The GraphQL operation is malformed, does not match the schema, or is too large"


class PersistedQueryNotFound(ApiError):
    status = 404
    code = "persisted_query_not_found"
    title = "No operation with this hash is known"


class IdInUse(ApiError):
    status = 409
    code = "id_in_use"
    title = "The connection already has a subscription with this id"


class IndexKeyTooLong(ApiError):
    status = 400
    code = "index_key_too_long"
    title = "A key of a unique index is too long"


class Overloaded(ApiError):
    status = 503
    code = "overloaded"
    title = "The server has no memory left for live queries"


class ClusterExists(ApiError):
    status = 409
    code = "cluster_exists"
    title = "The tenant already has a dedicated grid"


class ClustersNotOffered(ApiError):
    status = 403
    code = "clusters_not_offered"
    title = "This installation does not offer dedicated grids"


class Unavailable(ApiError):
    status = 503
    code = "unavailable"
    title = "The service is temporarily unavailable"


class Internal(ApiError):
    status = 500
    code = "internal"
    title = "Something went wrong on our side"
