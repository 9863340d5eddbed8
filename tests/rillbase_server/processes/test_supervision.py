"""The services of one process: each is ready, fails, restarts and ends independently."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from rillbase_server.launcher.lifecycle import RestartPolicy
from rillbase_server.processes.supervision import NotReady, SupervisedService, Supervision
from tests.waiting import TIMEOUT_S, until

QUICK = RestartPolicy(first_delay_s=0.01, max_delay_s=0.02)


class Bench:
    """Makes services that work until `failing` names the number of one of them."""

    def __init__(self) -> None:
        self.account = 0
        self.failing: set[int] = set()
        self.released: list[int] = []

    def make(self) -> BenchService:
        self.account += 1
        return BenchService(self, self.account)


class BenchService:
    """Works, and fails on request."""

    def __init__(self, bench: Bench, number: int) -> None:
        self._bench, self._number = bench, number
        self.ready = False

    def status(self) -> dict[str, object]:
        return {"number": self._number}

    async def run(self) -> None:
        self.ready = True
        try:
            while self._number not in self._bench.failing:  # noqa: ASYNC110
                await asyncio.sleep(0)
            raise RuntimeError("it fails")
        finally:
            await asyncio.sleep(0)
            self._bench.released.append(self._number)


def is_ready(service: SupervisedService) -> bool:
    try:
        service.check()
    except NotReady:
        return False
    return True


@asynccontextmanager
async def supervised(
    services: Sequence[SupervisedService], ended: asyncio.Event | None = None
) -> AsyncIterator[Supervision]:
    supervision = Supervision(services, (ended or asyncio.Event()).set)
    await supervision.start()
    try:
        yield supervision
    finally:
        await supervision.stop()


async def test_a_failed_service_restarts_without_affecting_the_others() -> None:
    first, second = Bench(), Bench()
    failing = SupervisedService("failing", first.make, QUICK)
    steady = SupervisedService("steady", second.make, QUICK)
    async with supervised([failing, steady]) as supervision:
        await until(lambda: is_ready(failing) and is_ready(steady), "both services")
        for number in (1, 2, 3):
            first.failing.add(number)
            await until(lambda: failing.status() == {"number": number + 1}, "the next one")  # noqa: B023
        await until(lambda: is_ready(failing), "the service to be back")
        assert failing.figures() == {"restarts": 3}
        assert steady.figures() == {}
        assert supervision.status() == {"failing": {"number": 4}, "steady": {"number": 1}}
        assert is_ready(steady)
    assert (first.released, second.released) == ([1, 2, 3, 4], [1])


async def test_a_service_that_waits_for_its_restart_is_not_ready() -> None:
    bench = Bench()
    service = SupervisedService("failing", bench.make, RestartPolicy(first_delay_s=TIMEOUT_S))
    async with supervised([service, SupervisedService("other", Bench().make)]):
        await until(lambda: is_ready(service), "the service")
        bench.failing.add(1)
        await until(lambda: bench.released == [1], "the service to fail")
        await until(lambda: not is_ready(service), "the service to be missed")
        assert service.status() == {}


async def test_a_service_that_cannot_be_created_is_retried() -> None:
    bench, attempts = Bench(), 0

    def make() -> BenchService:
        nonlocal attempts
        attempts += 1
        if attempts < 3:
            raise OSError("there is no room for it")
        return bench.make()

    service = SupervisedService("late", make, QUICK)
    async with supervised([service, SupervisedService("other", Bench().make)]):
        await until(lambda: is_ready(service), "the third attempt")


@pytest.mark.parametrize("fails", [True, False])
async def test_a_process_ends_with_its_only_service(*, fails: bool) -> None:
    bench, ended = Bench(), asyncio.Event()
    async with supervised([SupervisedService("alone", bench.make, QUICK)], ended) as supervision:
        await until(lambda: supervision.status() == {"number": 1}, "the service")
        if fails:
            bench.failing.add(1)
            await asyncio.wait_for(ended.wait(), TIMEOUT_S)
    assert ended.is_set() is fails
    assert (bench.account, bench.released) == (1, [1])


async def test_a_service_whose_awaited_work_others_cancelled_is_restarted() -> None:
    bench = Bench()

    class AwaitsOthers(BenchService):
        async def run(self) -> None:
            if self._number == 1:
                cancelled = asyncio.get_running_loop().create_future()
                cancelled.cancel()
                await cancelled
            await super().run()

    def make() -> BenchService:
        bench.account += 1
        return AwaitsOthers(bench, bench.account)

    service = SupervisedService("awaits", make, QUICK)
    running = asyncio.create_task(service.run())
    await until(lambda: is_ready(service), what="the service to be restarted")
    assert bench.account == 2
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
