"""Rate limits: GCRA in Valkey; per process while Valkey is down."""

from foundation.limits.gcra import Decision, Limit, LimitState
from foundation.limits.limiter import Limiter, limiter

__all__ = ["Decision", "Limit", "LimitState", "Limiter", "limiter"]
