"""Subscriptions that are about to start, admitted together.

A start counts against its tenant's rate of calls and its quota of subscriptions, which are kept in
Valkey. Starts of one credential that wait at the same time share these two calls; a single one
makes them immediately. Starts are bulk work: while other tenants are active they wait for the
budget (foundation/bulk_budget.py), and starts that arrive meanwhile are admitted with them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass

from connections.callers import Party
from connections.open_subscription import OpenSubscription
from foundation.bulk_budget import BulkBudget
from foundation.errors import ApiError

log = logging.getLogger(__name__)

#: A client may send thousands at once; those of one batch are opened at the same time.
MAX_BATCH = 32


@dataclass(slots=True, eq=False)
class Start:
    """A subscription that waits to be admitted."""

    held: OpenSubscription
    party: Party
    #: Number of calls that it counts as: 0 if its request has already been counted.
    calls: int
    verdict: asyncio.Future[None]


#: Admits several starts of one credential, or raises why not all of them can be admitted.
Step = Callable[[Sequence[Start]], Awaitable[None]]


class Starts:
    """The starts of one event loop."""

    def __init__(self, budget: BulkBudget, steps: Sequence[Step]) -> None:
        self._budget = budget
        self._steps = steps
        self._waiting: dict[Hashable, list[Start]] = {}
        self._pumps: set[asyncio.Task[None]] = set()

    async def admit(self, held: OpenSubscription, party: Party, calls: int) -> None:
        """Wait until a subscription is admitted, or raise why it is not."""
        verdict: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        start = Start(held, party, calls, verdict)
        credential = (party.tenant.id, party.principal.credential_id)
        if (waiting := self._waiting.get(credential)) is not None:
            waiting.append(start)
        else:
            self._waiting[credential] = [start]
            pump = asyncio.create_task(self._pump(credential, party.tenant.id))
            self._pumps.add(pump)
            pump.add_done_callback(self._pumps.discard)
        try:
            await verdict
            # A whole batch is admitted at once, but its subscriptions are opened one by one.
            await self._budget.wait(party.tenant.id)
        except BaseException:
            # The start may have been counted before it was cancelled.
            held.uncount()
            raise

    async def _pump(self, credential: Hashable, tenant: Hashable) -> None:
        """Admit what waits for one credential, until nothing does."""
        waiting = self._waiting[credential]
        try:
            while waiting:
                await self._budget.wait_for_batch(tenant)
                batch, waiting[:MAX_BATCH] = waiting[:MAX_BATCH], []
                await self._budget.metered(tenant, self._serve(batch))
        finally:
            del self._waiting[credential]
            for start in waiting:
                start.verdict.cancel()

    async def _serve(self, batch: list[Start]) -> None:
        for step in self._steps:
            batch = await _passed(batch, step)
        for start in batch:
            if not start.verdict.done():
                start.verdict.set_result(None)


async def _passed(batch: list[Start], step: Step) -> list[Start]:
    """Apply a step to starts; return those that passed. If it fails for all together, try each
    alone.
    """
    batch = [start for start in batch if not start.verdict.done()]
    if not batch:
        return []
    try:
        await step(batch)
    except ApiError as refused:
        if len(batch) > 1:
            return [passed for start in batch for passed in await _passed([start], step)]
        _refuse(batch, refused)
    except Exception as failed:
        log.exception("subscriptions could not be admitted")
        _refuse(batch, failed)
    else:
        return batch
    return []


def _refuse(batch: Sequence[Start], error: Exception) -> None:
    """Notify those that still wait: a client may have disconnected while the step ran."""
    for start in batch:
        if not start.verdict.done():
            start.verdict.set_exception(error)
