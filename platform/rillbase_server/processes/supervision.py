"""Keeps the services of a process running.

A service that fails is logged and restarted after a back-off, without affecting the other services.
If it is the only one, or part of it does not stop, its process exits instead, and is restarted by
its supervisor with a clean state.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from rillbase_server.launcher.lifecycle import RestartPolicy

logger = logging.getLogger(__name__)

POLICY = RestartPolicy()


class BackgroundService(Protocol):
    """The interface of a service of the table."""

    @property
    def ready(self) -> bool:
        """Whether it is working, or standing by to take over."""

    def status(self) -> dict[str, object]:
        """Describe the state, for operators."""

    async def run(self) -> None:
        """Work until cancelled, then release everything. A failure is raised."""


class NotReady(Exception):
    """The service has not started working, or has failed."""


class ServiceStuck(Exception):
    """Part of a service does not stop: another one can be started only in another process."""


class SupervisedService:
    """One service of a process, across restarts."""

    def __init__(
        self, name: str, create: Callable[[], BackgroundService], policy: RestartPolicy = POLICY
    ) -> None:
        self.name = name
        self.restarts = 0
        self._make = create
        self._policy = policy
        self._service: BackgroundService | None = None

    def check(self) -> None:
        """Raise unless the service is ready."""
        if self._service is None or not self._service.ready:
            raise NotReady

    def figures(self) -> Mapping[str, object]:
        """Return the figures that `/readyz` shows besides the state."""
        readiness = getattr(self._service, "readiness", dict)
        return {**readiness(), **({"restarts": self.restarts} if self.restarts else {})}

    def status(self) -> dict[str, object]:
        """Describe the state, for operators."""
        return {} if self._service is None else self._service.status()

    async def run_once(self) -> None:
        """Run the service until it fails or is cancelled."""
        try:
            self._service = self._make()
            await self._service.run()
        except asyncio.CancelledError:
            if (own := asyncio.current_task()) is None or own.cancelling():
                raise
            # Something that the service awaited was cancelled, not the service.
            logger.exception("the service failed: %s", self.name)
        except ServiceStuck:
            logger.exception("the service failed and does not stop: %s", self.name)
            raise
        except Exception:
            logger.exception("the service failed: %s", self.name)
        else:
            logger.error("the service ended: %s", self.name)
        finally:
            self._service = None

    async def run(self) -> None:
        """Run the service until cancelled, restarting it after failures."""
        failures = 0
        while True:
            begun_s = time.monotonic()
            await self.run_once()
            stable = time.monotonic() - begun_s >= self._policy.stable_after_s
            failures = 1 if stable else failures + 1
            await asyncio.sleep(self._policy.delay_s(failures))
            self.restarts += 1


class Supervision:
    """The services of one process. `end_process` is called when a restart needs another one."""

    def __init__(
        self, services: Sequence[SupervisedService], end_process: Callable[[], None]
    ) -> None:
        self._services = services
        self._end_process = end_process
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        self._tasks = [
            asyncio.create_task(self._run(service), name=service.name) for service in self._services
        ]

    async def stop(self) -> None:
        """Drain all services together."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def status(self) -> dict[str, object]:
        """Describe the only service, or each by its name."""
        match self._services:
            case [alone]:
                return alone.status()
            case services:
                return {service.name: service.status() for service in services}

    async def _run(self, service: SupervisedService) -> None:
        """Run a service until its process has to end."""
        with suppress(ServiceStuck):
            await (service.run_once() if len(self._services) == 1 else service.run())
        self._end_process()
