"""Errors of connections and subscriptions."""

from __future__ import annotations

from foundation.errors.api_error import ApiError


class SubscriptionEnded(ApiError):
    status = 410
    code = "subscription_ended"
    title = "A member of the tenant ended the subscription"


class NotTraceable(ApiError):
    status = 400
    code = "not_traceable"
    title = "Only live queries of documents can be explained"


class TooManySubscriptions(ApiError):
    status = 429
    code = "too_many_subscriptions"
    title = "The tenant or the server has too many subscriptions"


class TooManyConnections(ApiError):
    status = 429
    code = "too_many_connections"
    title = "The tenant has too many connections"


class HandshakeFailed(ApiError):
    status = 400
    code = "handshake_failed"
    title = "The webhook's receiver did not complete the handshake"


class NotLive(ApiError):
    status = 400
    code = "not_live"
    title = "A live query cannot depend on the current time"


class ResidualQuota(ApiError):
    status = 422
    code = "residual_quota"
    title = "The tenant has too many residual queries"


class Poison(ApiError):
    status = 500
    code = "poison"
    title = "A write could not be matched"


class IdInUse(ApiError):
    status = 409
    code = "id_in_use"
    title = "The connection already has a subscription with this id"
