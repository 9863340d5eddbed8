"""Errors of the resources of a tenant: their names, their states, their sources."""

from __future__ import annotations

from foundation.errors.api_error import ApiError


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


class ResourceGone(ApiError):
    status = 410
    code = "gone"
    title = "The resource is no longer available"


class SnapshotExpired(ApiError):
    status = 410
    code = "snapshot_expired"
    title = "The snapshot has expired"


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


class ClusterExists(ApiError):
    status = 409
    code = "cluster_exists"
    title = "The tenant already has a dedicated grid"


class ClustersNotOffered(ApiError):
    status = 403
    code = "clusters_not_offered"
    title = "This installation does not offer dedicated grids"
