"""Runs jobs in workers, a bounded number at once; owners take turns (`fair_queue`).

The first job starts the template process. It ends when there has been no job for a while, so a
process that runs no jobs holds no memory for them. A job that is cancelled, as when its client
hangs up, is killed.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from enum import StrEnum

from foundation import metrics
from foundation.json_types import JsonObject
from foundation.sandbox import messages
from foundation.sandbox.fair_queue import FairQueue
from foundation.sandbox.limits import JobLimits
from foundation.sandbox.template_client import Template, TemplateFailed

logger = logging.getLogger(__name__)

MAX_REPLY_BYTES = 1024 * 1024
_PART_BYTES = 64 * 1024


class FailureReason(StrEnum):
    """Why a job has no result."""

    MEMORY = "memory"
    CPU_TIME = "cpu_time"
    DEADLINE = "deadline"
    CRASH = "crash"


class JobFailed(Exception):
    """The job exceeded its limits, or its worker crashed."""

    def __init__(self, reason: FailureReason) -> None:
        super().__init__(reason)
        self.reason = reason


class WorkerPool:
    """Workers of one decoder, for one event loop."""

    def __init__(
        self, name: str, decoder: str, *, slots: int, max_waiting: int, idle_s: float
    ) -> None:
        self._name = name
        self._decoder = decoder
        self._idle_s = idle_s
        self._queue: FairQueue[asyncio.Future[None]] = FairQueue(slots, max_waiting)
        self._template: Template | None = None
        self._starting = asyncio.Lock()
        self._idle_timer: asyncio.TimerHandle | None = None
        self._stopping: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def turn(self, owner: str) -> AsyncIterator[None]:
        """Wait for a slot and hold it for the block, which runs one job; may raise `QueueFull`."""
        started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.add(owner, started)
        self._start_waiting()
        try:
            await asyncio.shield(started)
        except asyncio.CancelledError:
            if started.done():
                self._finish(owner)
            else:
                self._queue.withdraw(owner, started)
            raise
        try:
            yield
        finally:
            self._finish(owner)

    async def run(self, request: JsonObject, files: Sequence[int], limits: JobLimits) -> JsonObject:
        """Return the decoder's result, or raise `JobFailed` or `TemplateFailed`.

        The worker gets `files`, which the caller opened and closes, and nothing else.
        """
        template = await self._running_template()
        job, ended, connection = template.fork(limits)
        try:
            with connection:
                try:
                    async with asyncio.timeout(limits.deadline_s):
                        received = await _converse(connection, request, files)
                        status = await asyncio.shield(ended)
                except TimeoutError:
                    raise JobFailed(FailureReason.DEADLINE) from None
            result = _result(received, status)
        except JobFailed as error:
            metrics.SANDBOX_JOBS.labels(self._name, error.reason).inc()
            raise
        finally:
            template.kill(job)
            with suppress(TemplateFailed):
                await asyncio.shield(ended)
        metrics.SANDBOX_JOBS.labels(self._name, "done").inc()
        return result

    async def aclose(self) -> None:
        """End all workers."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if self._stopping is not None:
            await self._stopping
        template, self._template = self._template, None
        if template is not None:
            await template.aclose()

    def _start_waiting(self) -> None:
        while (started := self._queue.start_next()) is not None:
            started.set_result(None)
        metrics.SANDBOX_WAITING.labels(self._name).set(self._queue.waiting)
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None

    def _finish(self, owner: str) -> None:
        self._queue.finish(owner)
        self._start_waiting()
        if self._queue.is_idle:
            loop = asyncio.get_running_loop()
            self._idle_timer = loop.call_later(self._idle_s, self._stop)

    def _stop(self) -> None:
        """End an idle template; the next job starts a new one."""
        template, self._template = self._template, None
        if template is not None:
            self._stopping = asyncio.get_running_loop().create_task(template.aclose())

    async def _running_template(self) -> Template:
        async with self._starting:
            template = self._template
            if template is None or not template.is_alive:
                if template is not None:
                    await template.aclose()
                template = self._template = await Template.start(self._decoder)
            return template


async def _converse(connection: socket.socket, request: JsonObject, files: Sequence[int]) -> bytes:
    """Send the request, and return all that the worker sends until it ends."""
    loop = asyncio.get_running_loop()
    head, body = messages.encode(request)
    received = bytearray()
    try:
        messages.send_head(connection, head, files)
        await loop.sock_sendall(connection, body)
        while part := await loop.sock_recv(connection, _PART_BYTES):
            received += part
            if len(received) > MAX_REPLY_BYTES:
                raise JobFailed(FailureReason.CRASH)
    except (BrokenPipeError, ConnectionResetError):
        return b""
    return bytes(received)


def _result(received: bytes, status: int) -> JsonObject:
    """Return the result in a reply, or raise why there is none."""
    if os.WIFSIGNALED(status):
        raise JobFailed(_reason(os.WTERMSIG(status)))
    reply = messages.decode(received) or {}
    if "out_of_memory" in reply:
        raise JobFailed(FailureReason.MEMORY)
    result = reply.get("result")
    if not isinstance(result, dict):
        logger.error("a worker failed: %s", reply.get("failed", f"wait status {status}"))
        raise JobFailed(FailureReason.CRASH)
    return result


def _reason(number: int) -> FailureReason:
    if number == signal.SIGXCPU:
        return FailureReason.CPU_TIME
    # A worker whose reply is awaited is killed only by the kernel, when memory runs out.
    return FailureReason.MEMORY if number == signal.SIGKILL else FailureReason.CRASH
