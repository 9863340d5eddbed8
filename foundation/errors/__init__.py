"""The errors that users see.

Every error an API caller can meet is a subclass of `ApiError` with a stable `code`; the
catalogue is the complete list and docs/errors.md describes each of its entries. Code
raises them anywhere; the edge renders them as `application/problem+json` (RFC 9457).
"""

from __future__ import annotations

from foundation.errors.access import (
    AddressNotAllowed,
    CredentialsExpired,
    CsrfFailed,
    EmailNotVerified,
    Forbidden,
    InvalidCredentials,
    MalformedKey,
    MissingScope,
    SignUpClosed,
    TargetNotAllowed,
    TenantDeleted,
    TenantSuspended,
    TokenExpired,
    Unauthenticated,
)
from foundation.errors.api_error import CATALOGUE, MAX_PLACES, ApiError, FieldProblem
from foundation.errors.documents import (
    ArrayTooLong,
    DocumentTooComplex,
    DocumentTooLarge,
    DuplicateId,
    DuplicateKey,
    EvaluationFailed,
    FilterTooLarge,
    IndexKeyTooLong,
    InvalidBson,
    InvalidDocument,
    InvalidExpression,
    InvalidFilter,
    InvalidGeometry,
    InvalidGroup,
    InvalidId,
    InvalidJson,
    InvalidLookup,
    InvalidProjection,
    InvalidRegex,
    InvalidSchema,
    InvalidSort,
    InvalidUpdate,
    NestingTooDeep,
    QueryTooExpensive,
    ResultTooLarge,
    UnsupportedOperator,
)
from foundation.errors.live import (
    HandshakeFailed,
    IdInUse,
    NotLive,
    NotTraceable,
    Poison,
    ResidualQuota,
    SubscriptionEnded,
    TooManyConnections,
    TooManySubscriptions,
)
from foundation.errors.requests import (
    BodyTooLarge,
    HeadersTooLarge,
    IdempotencyInProgress,
    IdempotencyMismatch,
    InvalidBody,
    InvalidCursor,
    InvalidOperation,
    InvalidParameter,
    MalformedJson,
    MalformedRequest,
    MethodNotAllowed,
    NotAcceptable,
    NotFound,
    PersistedQueryNotFound,
    PreconditionFailed,
    QuotaExceeded,
    RateLimited,
    RequestTimeout,
    UnknownHost,
    UnsupportedMediaType,
)
from foundation.errors.resources import (
    ClusterExists,
    ClustersNotOffered,
    CollectionReadOnly,
    Conflict,
    EventTooOld,
    InvalidSource,
    InvalidUpload,
    LastOwner,
    NameTaken,
    ResourceGone,
    SnapshotExpired,
    SourceUnreachable,
    StateExpired,
    SumOverflow,
    TooManyValues,
    UploadLimitExceeded,
)
from foundation.errors.server import Internal, Overloaded, StorageFull, Unavailable
