"""Long computations of an event loop, in slices between which its other tasks run.

The work runs in a thread of its own that only computes while the loop waits for it: for half a
millisecond at a time, so the two never compete for the interpreter. It calls `pause` often, which
stops it at the end of a slice. While several tenants are active, the work of one waits between its
slices for its share of the loop (foundation/bulk_budget.py).
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeAlias, TypeVar

from foundation import bulk_budget
from foundation.event_loop_budget import BUDGET_S
from foundation.per_loop import PerLoop
from foundation.turns import TurnScheduler

T = TypeVar("T")

#: Ends the slice if it has taken long enough.
Pause: TypeAlias = Callable[[], None]

#: Computations of one event loop at a time, in total and per tenant.
AT_ONCE, OF_ONE = 4, 2
#: Work that takes less than this does not wait between its slices.
SHORT_S = 0.005

_turns = PerLoop(lambda: TurnScheduler(AT_ONCE, OF_ONE, bulk_budget.tenants))


async def run_in_slices(tenant: Hashable, work: Callable[[Pause], T]) -> T:
    """Run a computation of a tenant, in turn, and return its result. A cancelled caller ends the
    computation at its next pause.
    """
    async with _turns.get().turn(tenant):
        computation = _Computation(work)
        try:
            used_s = 0.0
            while True:
                took_s = computation.run_slice()
                bulk_budget.tenants.charge(tenant, took_s)
                if computation.is_over:
                    return computation.result()
                used_s += took_s
                await asyncio.sleep(0)
                if used_s > SHORT_S:
                    await bulk_budget.tenants.wait(tenant)
        finally:
            computation.abandon()


class _Abandoned(BaseException):
    """The caller was cancelled."""


class _Computation(Generic[T]):
    """A computation in a thread, which is stopped except during a slice."""

    def __init__(self, work: Callable[[Pause], T]) -> None:
        self._work = work
        self._next_slice = threading.Semaphore(0)
        self._end_of_slice = threading.Semaphore(0)
        self._slice_until_s = 0.0
        self._is_abandoned = False
        self._result: list[T] = []
        self._error: BaseException | None = None
        self.is_over = False
        threading.Thread(target=self._run, name="computation", daemon=True).start()

    def run_slice(self) -> float:
        """Run until the end of a slice; return how long that took."""
        began_s = time.perf_counter()
        self._slice_until_s = began_s + BUDGET_S
        self._next_slice.release()
        self._end_of_slice.acquire()
        return time.perf_counter() - began_s

    def result(self) -> T:
        """Return the result, or raise the error of the work."""
        if self._error is not None:
            raise self._error
        return self._result[0]

    def abandon(self) -> None:
        """Make the thread end, if it has not."""
        if not self.is_over:
            self._is_abandoned = True
            self._next_slice.release()

    def _run(self) -> None:
        self._next_slice.acquire()
        try:
            if not self._is_abandoned:
                self._result.append(self._work(self._pause))
        except BaseException as error:  # noqa: BLE001 -- the caller raises it
            self._error = error
        self.is_over = True
        self._end_of_slice.release()

    def _pause(self) -> None:
        if time.perf_counter() < self._slice_until_s:
            return
        self._end_of_slice.release()
        self._next_slice.acquire()
        if self._is_abandoned:
            raise _Abandoned
