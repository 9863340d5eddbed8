"""Rate limits: GCRA in Valkey by one script call a request, per process while Valkey is away."""

from foundation.limits.gcra import Decision, Limit, LimitState
from foundation.limits.limiter import Limiter, limiter

__all__ = ["Decision", "Limit", "LimitState", "Limiter", "limiter"]
