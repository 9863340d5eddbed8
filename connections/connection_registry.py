"""All connections of this process.

One task re-checks credentials several times a second, another sends heartbeats. Before the server
shuts down, each client is asked to reconnect, at random times so that they do not all come at once.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from typing import Protocol
from uuid import UUID

from django.db import DatabaseError

from connections import frames
from connections.callers import ConnectionCaller
from connections.penalty_delay import PenaltyDelay
from connections.quotas import ConnectionUsage, Quotas
from connections.subscriptions import OpenSubscription, PendingStart, Starts
from data_plane.calls import check_rate_limits, looked_up
from foundation import bulk_budget, contention, server_messages
from foundation.errors import ApiError, Internal, TooManyConnections, TooManySubscriptions
from foundation.json_types import JsonObject
from foundation.metrics import SOCKETS
from tenants.credentials.cache import at_most
from tenants.credentials.credential_reference import (
    CredentialReference,
    preload_keys,
    resolve_reference,
)

log = logging.getLogger(__name__)

#: The interval of re-checks, and the greatest age of a cached result. Together with the lookup
#: itself they stay below the second within which a revocation must take effect.
JUDGE_S, BELIEVED_S = 0.4, 0.3
#: Clients that are asked to reconnect do so within this time.
RECONNECT_WITHIN_MS = 5_000
#: While a server drains, load balancers must notice first: no client is asked to reconnect earlier.
GRACE_SHARE = 0.2

#: The message of a server that is about to stop.
STOPPING = "server.stopping"

Verdict = tuple[ConnectionCaller, None] | tuple[None, ApiError]


class RegisteredConnection(Protocol):
    """A connection of any protocol."""

    @property
    def id(self) -> str: ...

    @property
    def caller(self) -> ConnectionCaller | None:
        """The caller, once it is known."""

    @property
    def is_judged(self) -> bool:
        """Whether its credentials are currently valid."""

    @property
    def busy(self) -> bool:
        """Whether frames wait, so that no heartbeat is needed."""

    @property
    def subscriptions(self) -> list[OpenSubscription]: ...

    def notify(self, frame: bytes) -> None:
        """Send a frame that belongs to no subscription."""

    def end(self, name: str, error: ApiError) -> bool:
        """End one subscription; return whether it existed."""

    async def judge(self, verdict: Verdict) -> None:
        """Continue with the current rights of the credentials."""


class ConnectionRegistry:
    """The connections of one event loop."""

    def __init__(self, process: str) -> None:
        self.connections: dict[str, RegisteredConnection] = {}
        self._by_tenant: defaultdict[UUID, set[RegisteredConnection]] = defaultdict(set)
        #: How many subscriptions count against each tenant's quota.
        self._subscriptions = Counter[UUID]()
        self.penalty_delay = PenaltyDelay(contention.tenants)
        self.starts = Starts(bulk_budget.subscription_starts, (_check_rate_limits, self._count_in))
        self._tasks: list[asyncio.Task[None]] = []
        self._quotas = Quotas(process, self._count, lambda: list(self._by_tenant))
        self._notified: set[str] = set()
        self._process = process
        self._is_stopping = False
        #: Called when a tenant gets its first connection here.
        self.tenant_came: Callable[[], None] = lambda: None

    async def start(self) -> None:
        """Start re-checks and heartbeats."""
        await self._quotas.start()
        self._tasks = [
            asyncio.create_task(self._keep_judging()),
            asyncio.create_task(self._keep_beating()),
        ]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        await self._quotas.stop()

    async def admit(self, connection: RegisteredConnection, caller: ConnectionCaller) -> None:
        """Count a new connection, or raise if its tenant has too many."""
        tenant, allowed = caller.tenant.id, _limits_of(caller)
        is_first = tenant not in self._by_tenant
        self._by_tenant[tenant].add(connection)
        self.connections[connection.id] = connection
        if is_first:
            self.tenant_came()
        SOCKETS.set(len(self.connections))
        try:
            usage = await self._open(tenant, allowed)
        except BaseException:
            self._discard(connection, tenant)
            raise
        if usage.connections > allowed.connections:
            self._discard(connection, tenant)
            raise TooManyConnections(
                f"The tenant may have at most {allowed.connections} connections."
            )

    def tenants(self) -> Collection[UUID]:
        """Return the tenants that have connections here."""
        return self._by_tenant.keys()

    def of_tenant(self, tenant: UUID) -> list[RegisteredConnection]:
        """Return the connections of a tenant."""
        return list(self._by_tenant.get(tenant, ()))

    def leave(self, connection: RegisteredConnection) -> None:
        """Remove a connection from the count."""
        if connection.caller is not None:
            self._discard(connection, connection.caller.tenant.id)

    def subscription_ended(self, caller: ConnectionCaller) -> None:
        """Called when a subscription has ended."""
        self._quotas.decreased(caller.tenant.id)

    async def _count_in(self, starts: Sequence[PendingStart]) -> None:
        """Count new subscriptions of one tenant, or raise if it would have too many."""
        caller = starts[0].caller
        tenant, allowed = caller.tenant.id, _limits_of(caller)
        for start in starts:
            self._subscriptions[tenant] += 1
            start.subscription.counted(lambda: self._uncount(tenant))
        try:
            usage = await self._open(tenant, allowed)
        except BaseException:
            _uncount_all(starts)
            raise
        if usage.subscriptions > allowed.subscriptions:
            _uncount_all(starts)
            raise TooManySubscriptions(
                f"The tenant may have at most {allowed.subscriptions} subscriptions."
            )

    def _uncount(self, tenant: UUID) -> None:
        self._subscriptions[tenant] -= 1
        if not self._subscriptions[tenant]:
            del self._subscriptions[tenant]

    async def _open(self, tenant: UUID, allowed: ConnectionUsage) -> ConnectionUsage:
        """Return what a tenant has in all processes. Valkey is not asked if this process alone
        has too many.
        """
        own = self._count(tenant)
        if own.connections > allowed.connections or own.subscriptions > allowed.subscriptions:
            return own
        return await self._quotas.with_others(tenant, allowed)

    def _count(self, tenant: UUID) -> ConnectionUsage:
        return ConnectionUsage(
            len(self._by_tenant.get(tenant, ())), self._subscriptions.get(tenant, 0)
        )

    def _discard(self, connection: RegisteredConnection, tenant: UUID) -> None:
        if self.connections.pop(connection.id, None) is None:
            return
        self._notified.discard(connection.id)
        for subscription in connection.subscriptions:
            subscription.uncount()
        others = self._by_tenant[tenant]
        others.discard(connection)
        if not others:
            del self._by_tenant[tenant]
        self._quotas.decreased(tenant)
        SOCKETS.set(len(self.connections))

    def ask_to_reconnect(self, within_s: float) -> None:
        """Ask each client to reconnect, spread over this time, starting after a delay."""
        self._announce_stop()
        loop = asyncio.get_running_loop()
        first_s = GRACE_SHARE * within_s
        for connection in self.connections.values():
            moment_s = random.uniform(first_s, within_s)  # noqa: S311 -- no secret
            loop.call_later(moment_s, self._dismiss, connection)

    def send_goodbyes(self) -> None:
        """Ask all clients to reconnect. The server closes the connections."""
        self._announce_stop()
        for connection in list(self.connections.values()):
            self._dismiss(connection)

    def _announce_stop(self) -> None:
        """Announce to other servers that clients are about to connect to them."""
        if not self._is_stopping:
            self._is_stopping = True
            message: JsonObject = {"type": STOPPING, "process": self._process}
            server_messages.send(server_messages.SERVERS, message)

    def _dismiss(self, connection: RegisteredConnection) -> None:
        if connection.id in self.connections and connection.id not in self._notified:
            self._notified.add(connection.id)
            connection.notify(frames.goodbye(random.randrange(RECONNECT_WITHIN_MS)))  # noqa: S311

    async def judge(
        self, is_concerned: Callable[[ConnectionCaller], bool] = lambda _: True
    ) -> None:
        """Re-check the credentials of all connections once, or of those that are affected."""
        judged = [
            (connection, caller)
            for connection in self.connections.values()
            if connection.is_judged
            and (caller := connection.caller) is not None
            and is_concerned(caller)
        ]
        if not judged:
            return
        verdicts = await looked_up(lambda: _verdicts([caller for _, caller in judged]))
        for (connection, caller), verdict in zip(judged, verdicts, strict=True):
            if connection.caller is caller:
                await connection.judge(verdict)

    async def _keep_judging(self) -> None:
        while True:
            await asyncio.sleep(JUDGE_S)
            try:
                await self.judge()
            except Exception:
                # The database is unavailable, so no credential can have been revoked in it.
                log.warning("credentials could not be checked", exc_info=True)

    async def _keep_beating(self) -> None:
        while True:
            await asyncio.sleep(frames.HEARTBEAT_S)
            beat = frames.heartbeat()
            for connection in self.connections.values():
                if not connection.busy:
                    connection.notify(beat)


def _uncount_all(starts: Sequence[PendingStart]) -> None:
    for start in starts:
        start.subscription.uncount()


async def _check_rate_limits(starts: Sequence[PendingStart]) -> None:
    """Count starts as calls, or raise if there are too many."""
    calls, caller = sum(start.calls for start in starts), starts[0].caller
    if calls:
        await check_rate_limits(caller.principal, caller.tenant, None, calls=calls)


def _limits_of(caller: ConnectionCaller) -> ConnectionUsage:
    limits = caller.tenant.limits
    return ConnectionUsage(limits["connections"], limits["subscriptions"])


def _verdicts(current_callers: list[ConnectionCaller]) -> list[Verdict]:
    """Return the current identity of each caller, or why it is no longer valid."""
    with at_most(BELIEVED_S):
        preload_keys({caller.credential for caller in current_callers})
        return [_verdict(caller) for caller in current_callers]


def _verdict(caller: ConnectionCaller) -> Verdict:
    reference: CredentialReference = caller.credential
    try:
        principal, tenant = resolve_reference(reference, caller.principal.claims)
    except ApiError as error:
        return None, error
    except DatabaseError:
        raise
    except Exception:
        # A failure with one caller's credentials must not prevent re-checks of the others.
        log.exception("the credentials of a connection could not be checked")
        return None, Internal()
    return ConnectionCaller(principal, tenant, reference), None
