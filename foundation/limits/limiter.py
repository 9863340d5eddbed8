"""Checks requests against limits: in Valkey while it responds, else with counters of this process.

One script call decides a request, however many limits apply to it, or several requests of a busy
caller (`foundation.limits.prepaid`). Valkey has little time to
respond, and a circuit breaker keeps a dead or frozen server from delaying each request.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha1
from importlib.resources import files
from typing import cast

from redis.exceptions import NoScriptError, RedisError

from foundation import metrics
from foundation.environment import environment
from foundation.limits.breaker import Breaker, Permit
from foundation.limits.gcra import Decision, Limit, admits, decide, require_distinct
from foundation.limits.local_counters import LocalCounters
from foundation.limits.prepaid import PrepaidRequests
from foundation.per_loop import PerLoop
from foundation.valkey_sockets import ValkeySockets
from foundation.valkey_wire import ValkeyWire

log = logging.getLogger(__name__)

SCRIPT = files(__package__).joinpath("gcra.lua").read_text(encoding="utf-8")
ANSWER_TIMEOUT_S = 0.1
CONNECT_TIMEOUT_S = 0.05
LOCAL_BUCKETS = 100_000


class Limiter:
    """Usable from many threads and event loops at once; connections are made when needed."""

    def __init__(
        self,
        url: str,
        *,
        answer_timeout_s: float = ANSWER_TIMEOUT_S,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        local_buckets: int = LOCAL_BUCKETS,
    ) -> None:
        self._breaker = Breaker()
        self._local = LocalCounters(local_buckets)
        self._sockets = ValkeySockets(
            url, connect_timeout_s=connect_timeout_s, answer_timeout_s=answer_timeout_s
        )
        self._wires = PerLoop(
            lambda: ValkeyWire(
                url, connect_timeout_s=connect_timeout_s, answer_timeout_s=answer_timeout_s
            )
        )
        self._prepaid = PerLoop(PrepaidRequests)
        self._sha = sha1(SCRIPT.encode(), usedforsecurity=False).hexdigest()
        metrics.LIMITS_STORE_UP.set(1)

    @property
    def shared(self) -> bool:
        """Whether decisions are made in Valkey at the moment, for all processes together."""
        return self._breaker.closed

    def check(self, limits: Sequence[Limit]) -> Decision:
        """Admit the request under all limits, or consume nothing."""
        require_distinct(limits)
        permit = self._breaker.permit()
        if permit is Permit.REFUSED:
            return self._check_locally(limits)
        keys, numbers = _arguments(limits)
        try:
            try:
                reply = self._sockets.call("EVALSHA", self._sha, len(keys), *keys, *numbers)
            except NoScriptError:
                reply = self._sockets.call("EVAL", SCRIPT, len(keys), *keys, *numbers)
        except RedisError as error:
            return self._on_unavailable(permit, error, limits)
        return self._decision(limits, cast("list[int]", reply))

    async def acheck(self, limits: Sequence[Limit]) -> Decision:
        """Do what `check` does, without blocking the event loop. Requests of a busy caller may have
        been counted in advance.
        """
        if (decision := self._prepaid.get().take(limits)) is not None:
            metrics.limit_decided(decision.policy, allowed=True, shared=True)
            return decision
        require_distinct(limits)
        permit = self._breaker.permit()
        if permit is Permit.REFUSED:
            return self._check_locally(limits)
        try:
            backlogs = await self._count(limits)
        except RedisError as error:
            return self._on_unavailable(permit, error, limits)
        return self._decision(limits, backlogs)

    async def _count(self, limits: Sequence[Limit]) -> list[int]:
        """Count the request, perhaps with some that will follow; return the backlogs before it."""
        prepaid = self._prepaid.get()
        with prepaid.counting(limits) as count:
            backlogs = await self._acall(limits, count)
            if count > 1 and not admits(limits, backlogs, count):
                return await self._acall(limits, 1)
            prepaid.counted(limits, backlogs, count)
        return backlogs

    async def _acall(self, limits: Sequence[Limit], count: int) -> list[int]:
        keys, numbers = _arguments(limits, count)
        wire = self._wires.get()
        try:
            reply = await wire.call("EVALSHA", self._sha, len(keys), *keys, *numbers)
        except NoScriptError:
            reply = await wire.call("EVAL", SCRIPT, len(keys), *keys, *numbers)
        return cast("list[int]", reply)

    def close(self) -> None:
        """Close the connections of `check`."""
        self._sockets.close()

    async def aclose(self) -> None:
        """Close what the running event loop has opened, and the connections of `check`."""
        if (wire := self._wires.pop()) is not None:
            await wire.aclose()
        self.close()

    def _decision(self, limits: Sequence[Limit], backlogs: list[int]) -> Decision:
        if self._breaker.succeeded():
            self._local.forget()
            metrics.LIMITS_STORE_UP.set(1)
            log.info("Valkey responds again: limits are shared between processes")
        decision = decide(limits, backlogs)
        metrics.limit_decided(decision.policy, allowed=decision.allowed, shared=True)
        return decision

    def _on_unavailable(
        self, permit: Permit, error: RedisError, limits: Sequence[Limit]
    ) -> Decision:
        if self._breaker.failed(permit):
            metrics.LIMITS_STORE_UP.set(0)
            log.warning(
                "Valkey does not respond: limits are counted per process until it does",
                extra={"error": type(error).__name__},
            )
        return self._check_locally(limits)

    def _check_locally(self, limits: Sequence[Limit]) -> Decision:
        decision = self._local.check(limits)
        metrics.limit_decided(decision.policy, allowed=decision.allowed, shared=False)
        return decision


def _arguments(limits: Sequence[Limit], count: int = 1) -> tuple[list[str], list[int]]:
    return [limit.storage_key for limit in limits], [
        number for limit in limits for number in (count * limit.increment_us, limit.tolerance_us)
    ]


@lru_cache(maxsize=1)
def limiter() -> Limiter:
    """Return this process's limiter, on the server that the settings name."""
    return Limiter(
        environment().limits,
        answer_timeout_s=ANSWER_TIMEOUT_S,
        connect_timeout_s=CONNECT_TIMEOUT_S,
    )
