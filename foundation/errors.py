"""The errors that users see.

Every error an API caller can meet is a subclass of `ApiError` with a stable `code`; the
catalogue is the complete list and docs/errors.md describes each of its entries. Code
raises them anywhere; the edge renders them as `application/problem+json` (RFC 9457).
"""

from __future__ import annotations

from foundation.api_error import CATALOGUE, MAX_PROBLEMS, ApiError, FieldProblem

# Errors of a request: its form, its conditions, and what it may use.


class MalformedJson(ApiError):
    status, code, title = 400, "malformed_json", "The body is not valid JSON"


class InvalidBody(ApiError):
    status, code, title = 400, "invalid_body", "The request body is not valid"


class InvalidParameter(ApiError):
    status, code, title = 400, "invalid_parameter", "A query parameter or a header is not valid"


class UnknownHost(ApiError):
    status, code, title = 400, "unknown_host", "The Host header does not name a host of this server"


class MalformedRequest(ApiError):
    status, code, title = 400, "malformed_request", "The request is not valid HTTP/1.1"


class InvalidCursor(ApiError):
    status, code, title = 400, "invalid_cursor", "The cursor is not valid for this list"


class NotFound(ApiError):
    status, code, title = 404, "not_found", "The resource does not exist or is not accessible"


class MethodNotAllowed(ApiError):
    status, code, title = 405, "method_not_allowed", "The method is not allowed for this path"


class NotAcceptable(ApiError):
    status, code = 406, "not_acceptable"
    title = "The response is not available in an accepted format"


class IdempotencyInProgress(ApiError):
    status, code = 409, "idempotency_in_progress"
    title = "A request with the same idempotency key is still running"


class PreconditionFailed(ApiError):
    status, code = 412, "precondition_failed"
    title = "The resource is not in the state that the request requires"


class BodyTooLarge(ApiError):
    status, code, title = 413, "body_too_large", "The body is larger than allowed"


class UnsupportedMediaType(ApiError):
    status, code, title = 415, "unsupported_media_type", "The body's media type is not supported"


class IdempotencyMismatch(ApiError):
    status, code = 422, "idempotency_mismatch"
    title = "The idempotency key was used with a different request"


class QuotaExceeded(ApiError):
    status, code, title = 403, "quota_exceeded", "The tenant's quota is exhausted"


class RateLimited(ApiError):
    status, code, title = 429, "rate_limited", "Too many requests"


class RequestTimeout(ApiError):
    status, code, title = 408, "request_timeout", "The request did not arrive in time"


class HeadersTooLarge(ApiError):
    status, code, title = 431, "headers_too_large", "The request has too many or too large headers"


class InvalidOperation(ApiError):
    status, code = 400, "invalid_operation"
    title = "The GraphQL operation is malformed, does not match the schema, or is too large"


class PersistedQueryNotFound(ApiError):
    status, code, title = 404, "persisted_query_not_found", "No operation with this hash is known"


# Errors of credentials, permissions and tenants.


class Unauthenticated(ApiError):
    status, code, title = 401, "unauthenticated", "Credentials are required"


class InvalidCredentials(ApiError):
    status, code, title = 401, "invalid_credentials", "The credentials are not valid"


class MalformedKey(ApiError):
    status, code, title = 401, "malformed_key", "The key is mistyped or truncated"


class CredentialsExpired(ApiError):
    status, code, title = 401, "credentials_expired", "The credentials have expired"


class TokenExpired(ApiError):
    status, code, title = 401, "token_expired", "The token that opened the connection has expired"


class EmailNotVerified(ApiError):
    status, code = 403, "email_not_verified"
    title = "The account's email address has not been verified"


class Forbidden(ApiError):
    status, code, title = 403, "forbidden", "The caller is not allowed to do this"


class MissingScope(ApiError):
    status, code, title = 403, "missing_scope", "The credentials lack the required scope"


class CsrfFailed(ApiError):
    status, code, title = 403, "csrf_failed", "The CSRF token is missing or wrong"


class AddressNotAllowed(ApiError):
    status, code, title = 403, "address_not_allowed", "The key may not be used from this address"


class SignUpClosed(ApiError):
    status, code, title = 403, "sign_up_closed", "Sign-up is not open on this installation"


class TenantSuspended(ApiError):
    status, code, title = 403, "tenant_suspended", "The tenant is suspended"


class TenantDeleted(ApiError):
    status, code, title = 410, "tenant_deleted", "The tenant is being deleted"


class TargetNotAllowed(ApiError):
    status, code, title = 400, "target_not_allowed", "The server may not call this URL"


# Errors of the resources of a tenant: their names, their states, their sources.


class Conflict(ApiError):
    status, code, title = 409, "conflict", "The request conflicts with the current state"


class NameTaken(ApiError):
    status, code, title = 409, "name_taken", "The name is already in use"


class LastOwner(ApiError):
    status, code, title = 409, "last_owner", "A tenant must keep at least one owner"


class ResourceGone(ApiError):
    status, code, title = 410, "gone", "The resource is no longer available"


class SnapshotExpired(ApiError):
    status, code, title = 410, "snapshot_expired", "The snapshot has expired"


class EventTooOld(ApiError):
    status, code, title = 400, "event_too_old", "The event is older than the aggregate accepts"


class SumOverflow(ApiError):
    status, code, title = 400, "sum_overflow", "A sum would overflow"


class TooManyValues(ApiError):
    status, code, title = 400, "too_many_values", "A row has too many distinct values"


class InvalidSql(ApiError):
    status, code, title = 400, "invalid_sql", "The SQL statement is not valid"


class InvalidUpload(ApiError):
    status, code, title = 400, "invalid_upload", "The uploaded rows do not fit their table"


class UploadLimitExceeded(ApiError):
    status, code = 422, "upload_limit_exceeded"
    title = "Decoding the upload exceeds its memory or time limit"


class StateExpired(ApiError):
    status, code, title = 410, "state_expired", "The state is no longer retained"


class CollectionReadOnly(ApiError):
    status, code = 409, "collection_read_only"
    title = "The collection is read-only: its documents come from a source"


class MixedBackends(ApiError):
    status, code, title = 400, "mixed_backends", "The collections have different backends"


class NotSupportedByBackend(ApiError):
    status, code = 400, "not_supported_by_backend"
    title = "The collection's backend does not support this"


class InvalidSource(ApiError):
    status, code, title = 400, "invalid_source", "The table cannot be used as a source"


class SourceUnreachable(ApiError):
    status, code, title = 422, "source_unreachable", "The source's database is unreachable"


class ClusterExists(ApiError):
    status, code, title = 409, "cluster_exists", "The tenant already has a dedicated grid"


class ClustersNotOffered(ApiError):
    status, code = 403, "clusters_not_offered"
    title = "This installation does not offer dedicated grids"


# Errors of documents and of queries over them.


class InvalidDocument(ApiError):
    status, code, title = 400, "invalid_document", "The document is not accepted"


class InvalidId(ApiError):
    status, code, title = 400, "invalid_id", "The _id is not accepted"


class InvalidBson(ApiError):
    status, code, title = 400, "invalid_bson", "The document is not valid BSON"


class InvalidJson(ApiError):
    status, code, title = 400, "invalid_json", "The text is not Extended JSON"


class DocumentTooLarge(ApiError):
    status, code, title = 413, "document_too_large", "The document is too large"


class ArrayTooLong(ApiError):
    status, code, title = 413, "array_too_long", "An array has too many elements"


class DocumentTooComplex(ApiError):
    status, code, title = 413, "document_too_complex", "The document has too many values"


class NestingTooDeep(ApiError):
    status, code, title = 400, "nesting_too_deep", "The nesting is too deep"


class InvalidFilter(ApiError):
    status, code, title = 400, "invalid_filter", "The filter is not valid"


class FilterTooLarge(ApiError):
    status, code, title = 400, "filter_too_large", "The filter is too large"


class UnsupportedOperator(ApiError):
    status, code, title = 400, "unsupported_operator", "The operator is not supported"


class InvalidRegex(ApiError):
    status, code, title = 400, "invalid_regex", "The regular expression is not accepted"


class InvalidSort(ApiError):
    status, code, title = 400, "invalid_sort", "The sort is not valid"


class InvalidProjection(ApiError):
    status, code, title = 400, "invalid_projection", "The projection is not valid"


class InvalidGroup(ApiError):
    status, code, title = 400, "invalid_group", "The group is not valid"


class InvalidLookup(ApiError):
    status, code, title = 400, "invalid_lookup", "The lookup is not valid"


class InvalidUpdate(ApiError):
    status, code, title = 400, "invalid_update", "The update is not valid"


class InvalidExpression(ApiError):
    status, code, title = 400, "invalid_expression", "The expression is not valid"


class InvalidSchema(ApiError):
    status, code, title = 400, "invalid_schema", "The JSON Schema is not valid"


class InvalidGeometry(ApiError):
    status, code, title = 400, "invalid_geometry", "The geometry is not valid"


class QueryTooExpensive(ApiError):
    status, code, title = 422, "query_too_expensive", "The query is too expensive"


class ResultTooLarge(ApiError):
    status, code, title = 422, "result_too_large", "The result has too many rows for a live query"


class EvaluationFailed(ApiError):
    status, code, title = 400, "evaluation_failed", "An expression could not be evaluated"


class DuplicateId(ApiError):
    status, code, title = 409, "duplicate_id", "A document with this _id already exists"


class DuplicateKey(ApiError):
    status, code = 409, "duplicate_key"
    title = "Another document has the same key in a unique index"


class IndexKeyTooLong(ApiError):
    status, code, title = 400, "index_key_too_long", "A key of a unique index is too long"


# Errors of connections and subscriptions.


class SubscriptionEnded(ApiError):
    status, code, title = 410, "subscription_ended", "A member of the tenant ended the subscription"


class NotTraceable(ApiError):
    status, code, title = 400, "not_traceable", "Only live queries of documents can be explained"


class TooManySubscriptions(ApiError):
    status, code = 429, "too_many_subscriptions"
    title = "The tenant or the server has too many subscriptions"


class TooManyConnections(ApiError):
    status, code, title = 429, "too_many_connections", "The tenant has too many connections"


class HandshakeFailed(ApiError):
    status, code = 400, "handshake_failed"
    title = "The webhook's receiver did not complete the handshake"


class NotLive(ApiError):
    status, code, title = 400, "not_live", "A live query cannot depend on the current time"


class ResidualQuota(ApiError):
    status, code, title = 422, "residual_quota", "The tenant has too many residual queries"


class Poison(ApiError):
    status, code, title = 500, "poison", "A write could not be matched"


class IdInUse(ApiError):
    status, code, title = 409, "id_in_use", "The connection already has a subscription with this id"


# Errors of a server that cannot answer now.


class StorageFull(ApiError):
    status, code, title = 507, "storage_full", "The disk is full"


class Overloaded(ApiError):
    status, code, title = 503, "overloaded", "The server has no memory left for live queries"


class Unavailable(ApiError):
    status, code, title = 503, "unavailable", "The service is temporarily unavailable"


class Internal(ApiError):
    status, code, title = 500, "internal", "Something went wrong on our side"
