"""Bounds of time that protect an installation, and would fail tests on a busy machine."""

from __future__ import annotations

from importlib import import_module

TIME_S = 60.0


def extend_time_limits() -> None:
    """Let the queries of this process take longer, and let it wait for Valkey to check limits
    instead of counting by itself.
    """
    # Settings can be imported only after the environment has been set.
    limiter = import_module("foundation.limits.limiter")
    for module, name in [
        (limiter, "ANSWER_TIMEOUT_S"),
        (limiter, "CONNECT_TIMEOUT_S"),
        (import_module("documents.store.queries"), "MAX_SECONDS"),
    ]:
        setattr(module, name, TIME_S)
