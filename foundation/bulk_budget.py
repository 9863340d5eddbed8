"""The share of an event loop that bulk work may take while several tenants are active.

Work that one client can cause in bulk (starting ten thousand subscriptions) is metered: the CPU
time of its steps on the loop's thread becomes a debt of the tenant, paid off at a fixed rate. While
other tenants are active, a tenant's next piece of bulk work waits until its debt is paid. The rate
is shared by all tenants that have debts, so bulk work as a whole takes a bounded share of the loop,
and a tenant without debts never waits for those of others. The load of the same work on PostgreSQL,
Valkey and the grid is proportional. A tenant that is alone never waits.

A request takes several iterations of the loop, so other tenants are affected not only by the share
but also by how long the loop is busy at a time. Waiting pieces of work therefore resume one by one,
each when the previous one has been paid for, never all at once.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Hashable
from typing import Generic, TypeVar

from foundation import contention
from foundation.contention import WINDOW_S, Contention

T = TypeVar("T")

#: Of one tenant, and of all tenants together.
SHARE_OF_ONE, SHARE_OF_ALL = 0.08, 0.16
#: The same for starting subscriptions, which takes many small steps.
STARTS_OF_ONE, STARTS_OF_ALL = 0.03, 0.09
#: A debt that is paid within this time is not waited for: it is within the accuracy of timers.
TOLERANCE_S = 0.002
#: The longest that a debt takes to pay off, so that a tenant which was alone until now and spent
#: very much can soon continue.
LONGEST_DEBT_S = 2.0
#: A batch of a throttled tenant starts after this time: larger batches cost less in total.
COLLECT_S = 0.1
#: How often paid debts are removed.
FORGET_S = 0.05


class _Queue:
    """Pieces of one tenant's work, which wait for its debt to be paid."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.turns: deque[asyncio.Future[None]] = deque()


class FreeTime:
    """CPU time of a piece of work that is not charged: most pieces do not need more."""

    def __init__(self, remaining_s: float) -> None:
        self.remaining_s = remaining_s

    @property
    def is_used(self) -> bool:
        return self.remaining_s <= 0

    def beyond(self, spent_s: float) -> float:
        """Count CPU time, and return how much of it exceeds what is free."""
        charged_s = max(0.0, spent_s - self.remaining_s)
        self.remaining_s = max(0.0, self.remaining_s - spent_s)
        return charged_s


class BulkBudget:
    """The debts of one event loop's tenants. For the loop's thread only."""

    def __init__(
        self,
        contention: Contention,
        monotonic_s: Callable[[], float] = time.monotonic,
        cpu_s: Callable[[], float] = time.thread_time,
        *,
        of_one: float = SHARE_OF_ONE,
        of_all: float = SHARE_OF_ALL,
    ) -> None:
        self.contention = contention
        self._of_one = of_one
        self._of_all = of_all
        self._monotonic_s = monotonic_s
        self._cpu_s = cpu_s
        #: Until when each tenant's debt is paid.
        self._paid_s: dict[Hashable, float] = {}
        self._forgotten_s = monotonic_s()
        self._queues: dict[Hashable, _Queue] = {}
        #: CPU time of metered work within the current step, which is not charged again.
        self._metered_within_s = 0.0

    def charge(self, tenant: Hashable, spent_s: float) -> None:
        """Add CPU time that a tenant's bulk work has taken."""
        now_s = self._monotonic_s()
        if now_s - self._forgotten_s > FORGET_S:
            self._forgotten_s = now_s
            self._paid_s = {who: paid for who, paid in self._paid_s.items() if paid > now_s}
        paid_s = max(now_s, self._paid_s.get(tenant, 0.0))
        debtors = len(self._paid_s) + (tenant not in self._paid_s)
        share = min(self._of_one, self._of_all / debtors)
        self._paid_s[tenant] = min(paid_s + spent_s / share, now_s + LONGEST_DEBT_S)

    def wait_s(self, tenant: Hashable) -> float:
        """Return how long a tenant's bulk work has to wait now."""
        return self.debt_s(tenant) if self.contention.is_contended else 0.0

    def debt_s(self, tenant: Hashable) -> float:
        """Return how long it takes until a tenant's debt is paid, or 0 if that is soon."""
        left_s = self._paid_s.get(tenant, 0.0) - self._monotonic_s()
        return left_s if left_s > TOLERANCE_S else 0.0

    async def wait(self, tenant: Hashable, *, is_last: bool = False) -> None:
        """Wait until bulk work of a tenant may continue.

        `is_last`: the last piece of something, which runs before pieces that start something.
        """
        if (turn := self._turn(tenant, is_last=is_last)) is not None:
            await turn

    async def wait_for_batch(self, tenant: Hashable) -> None:
        """Wait like `wait`. A throttled tenant has time to add to the batch meanwhile."""
        if self.wait_s(tenant):
            await asyncio.sleep(COLLECT_S)
        await self.wait(tenant)

    def _turn(self, tenant: Hashable, *, is_last: bool) -> asyncio.Future[None] | None:
        """Return what a tenant's bulk work must await before it continues, or None."""
        loop = asyncio.get_running_loop()
        queue = self._queues.get(tenant)
        if queue is None or queue.loop is not loop:
            if not (wait_s := self.wait_s(tenant)):
                return None
            queue = self._queues[tenant] = _Queue(loop)
            loop.call_later(min(wait_s, WINDOW_S), self._continue, tenant, queue)
        turn: asyncio.Future[None] = loop.create_future()
        if is_last:
            queue.turns.appendleft(turn)
        else:
            queue.turns.append(turn)
        return turn

    def _continue(self, tenant: Hashable, queue: _Queue) -> None:
        """Resume the piece of work that has waited longest, if the debt is paid."""
        if wait_s := self.wait_s(tenant):
            queue.loop.call_later(min(wait_s, WINDOW_S), self._continue, tenant, queue)
            return
        while queue.turns:
            turn = queue.turns.popleft()
            if not turn.done():
                turn.set_result(None)
                # This runs after the next step of that piece, which has been charged by then.
                queue.loop.call_soon(self._continue, tenant, queue)
                return
        if self._queues.get(tenant) is queue:
            del self._queues[tenant]

    async def metered(
        self,
        tenant: Hashable,
        work: Coroutine[object, None, T],
        free: FreeTime | None = None,
    ) -> T:
        """Run a piece of bulk work and charge its CPU time to the tenant, once if metered work
        is part of it.
        """
        return await _MeteredAwaitable(work, tenant, self, free)

    def step(
        self,
        tenant: Hashable,
        work: Coroutine[object, None, object],
        thrown: BaseException | None = None,
        free: FreeTime | None = None,
    ) -> object:
        """Run one step, up to the next await."""
        began_s = self._cpu_s()
        metered_before_s, self._metered_within_s = self._metered_within_s, 0.0
        try:
            return work.send(None) if thrown is None else work.throw(thrown)
        finally:
            # The traceback refers to this frame. A reference back would keep everything that the
            # cancelled work held, such as a message of 32 MiB, until the garbage collector runs.
            del thrown
            spent_s = self._cpu_s() - began_s
            own_s = spent_s - self._metered_within_s
            self._metered_within_s = metered_before_s + spent_s
            if free is not None:
                own_s = free.beyond(own_s)
            if own_s > 0:
                self.charge(tenant, own_s)


class _MeteredAwaitable(Generic[T]):
    """An awaitable that meters the steps of another one."""

    def __init__(
        self,
        work: Coroutine[object, None, T],
        tenant: Hashable,
        budget: BulkBudget,
        free: FreeTime | None,
    ) -> None:
        self._work = work
        self._tenant = tenant
        self._budget = budget
        self._free = free

    def __await__(self) -> Generator[object, None, T]:
        try:
            awaited = self._budget.step(self._tenant, self._work, free=self._free)
            while True:
                try:
                    yield awaited
                except GeneratorExit:
                    self._work.close()
                    raise
                except BaseException as error:  # noqa: BLE001 -- the work decides
                    awaited = self._budget.step(self._tenant, self._work, error, self._free)
                else:
                    awaited = self._budget.step(self._tenant, self._work, free=self._free)
        except StopIteration as done:
            result: T = done.value
            return result


#: The budget of all tenants, on this process's event loop.
tenants = BulkBudget(contention.tenants)
subscription_starts = BulkBudget(contention.tenants, of_one=STARTS_OF_ONE, of_all=STARTS_OF_ALL)
