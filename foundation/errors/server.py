"""Errors of a server that cannot answer now."""

from __future__ import annotations

from foundation.errors.api_error import ApiError


class StorageFull(ApiError):
    status = 507
    code = "storage_full"
    title = "The disk is full"


class Overloaded(ApiError):
    status = 503
    code = "overloaded"
    title = "The server has no memory left for live queries"


class Unavailable(ApiError):
    status = 503
    code = "unavailable"
    title = "The service is temporarily unavailable"


class Internal(ApiError):
    status = 500
    code = "internal"
    title = "Something went wrong on our side"
