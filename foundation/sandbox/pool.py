"""Runs jobs in workers, a bounded number at once; owners take turns (`fair_queue`).

The first job starts the template process. It ends when there has been no job for a while, so a
process that runs no jobs holds no memory for them. A job that is cancelled, as when its client
hangs up, is killed.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import socket
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import TypeAlias

from foundation import metrics
from foundation.json_types import JsonObject
from foundation.sandbox import messages
from foundation.sandbox.failures import FailureReason, JobFailed, reason_of
from foundation.sandbox.fair_queue import FairQueue
from foundation.sandbox.landlock import JobFolders
from foundation.sandbox.limits import JobLimits
from foundation.sandbox.session import Session
from foundation.sandbox.template_client import SandboxWorker, Template, TemplateFailed

#: Who waits for a slot, by owner.
TurnQueue: TypeAlias = FairQueue[asyncio.Future[None]]

logger = logging.getLogger(__name__)

MAX_REPLY_BYTES = 1024 * 1024
_PART_BYTES = 64 * 1024
#: As many workers wait for sessions; each holds some megabytes.
_PREPARED = 2


class WorkerPool:
    """Workers of one decoder, for one event loop."""

    def __init__(self, name: str, decoder: str, queue: TurnQueue, *, idle_s: float) -> None:
        """Pools that share a queue share its slots."""
        self._name = name
        self._decoder = decoder
        self._idle_s = idle_s
        self._queue = queue
        #: Turns that have not ended, and those of them that wait for a slot.
        self._turns = self._waiting = 0
        self._template: Template | None = None
        #: Workers that wait for a session.
        self._prepared: deque[SandboxWorker] = deque()
        self._starting = asyncio.Lock()
        self._idle_timer: asyncio.TimerHandle | None = None
        self._stopping: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def turn(self, owner: str) -> AsyncIterator[None]:
        """Wait for a slot and hold it for the block, which runs one job; may raise `QueueFull`."""
        started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.add(owner, started)
        self._begin_turn()
        try:
            await self._granted(started)
            yield
        finally:
            if started.done():
                self._queue.finish(owner)
            else:
                self._queue.withdraw(owner, started)
            self._end_turn()

    async def run(self, request: JsonObject, files: Sequence[int], limits: JobLimits) -> JsonObject:
        """Return the decoder's result, or raise `JobFailed` or `TemplateFailed`.

        The worker gets `files`, which the caller opened and closes, and nothing else.
        """
        template = await self._running_template()
        worker = template.fork(limits)
        try:
            with worker.connection:
                try:
                    async with asyncio.timeout(limits.deadline_s):
                        received = await _converse(worker.connection, request, files)
                        status = await asyncio.shield(worker.ended)
                except TimeoutError:
                    raise JobFailed(FailureReason.DEADLINE) from None
            result = _result(received, status)
        except JobFailed as error:
            metrics.SANDBOX_JOBS.labels(self._name, error.reason).inc()
            raise
        finally:
            template.kill(worker.job)
            with suppress(TemplateFailed):
                await asyncio.shield(worker.ended)
        metrics.SANDBOX_JOBS.labels(self._name, "done").inc()
        return result

    @asynccontextmanager
    async def session(
        self, limits: JobLimits, readable: Path, temporary: Path
    ) -> AsyncIterator[Session]:
        """Run one job that may read the files in `readable`, with which the block talks.

        The worker has a folder of its own below `temporary`, with at most `limits.file_bytes`.
        May raise `TemplateFailed` or `FileNotFoundError`.
        """
        template = await self._running_template()
        folder = Path(mkdtemp(dir=temporary))
        outcome = FailureReason.CRASH.value
        try:
            session = self._begin(template, limits, readable, folder)
            session.end_after(limits.deadline_s)
            session.bound_folder(folder, limits.file_bytes)
            try:
                yield session
            finally:
                outcome = session.failure or "done"
                await session.aclose()
        finally:
            metrics.SANDBOX_JOBS.labels(self._name, outcome).inc()
            shutil.rmtree(folder, ignore_errors=True)
            self._prepare(template)

    async def aclose(self) -> None:
        """End all workers."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if self._stopping is not None:
            await self._stopping
        template = self._take_template()
        if template is not None:
            await template.aclose()

    async def _granted(self, started: asyncio.Future[None]) -> None:
        self._count_waiting(1)
        try:
            await asyncio.shield(started)
        finally:
            self._count_waiting(-1)

    def _count_waiting(self, more: int) -> None:
        self._waiting += more
        metrics.SANDBOX_WAITING.labels(self._name).set(self._waiting)

    def _begin_turn(self) -> None:
        self._turns += 1
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        _start_waiting(self._queue)

    def _end_turn(self) -> None:
        self._turns -= 1
        _start_waiting(self._queue)
        if not self._turns:
            loop = asyncio.get_running_loop()
            self._idle_timer = loop.call_later(self._idle_s, self._stop)

    def _stop(self) -> None:
        """End an idle template; the next job starts a new one."""
        template = self._take_template()
        if template is not None:
            self._stopping = asyncio.get_running_loop().create_task(template.aclose())

    async def _running_template(self) -> Template:
        async with self._starting:
            template = self._template
            if template is None or not template.is_alive:
                if (ended := self._take_template()) is not None:
                    await ended.aclose()
                template = self._template = await Template.start(self._decoder)
            return template

    def _take_template(self) -> Template | None:
        """Forget the template, and dismiss the workers that it has prepared."""
        template, self._template = self._template, None
        while self._prepared:
            self._prepared.pop().connection.close()
        return template

    def _prepare(self, template: Template) -> None:
        """Let a worker wait for the next session, so that it does not wait for a fork."""
        if template is self._template and template.is_alive and len(self._prepared) < _PREPARED:
            with suppress(TemplateFailed):
                self._prepared.append(template.prepare())

    def _begin(
        self, template: Template, limits: JobLimits, readable: Path, folder: Path
    ) -> Session:
        with _opened(readable) as source, _opened(folder) as temporary:
            worker = self._next_worker(template)
            worker.assign(limits, JobFolders(source, temporary))
            return Session(template, worker)

    def _next_worker(self, template: Template) -> SandboxWorker:
        while template is self._template and self._prepared:
            worker = self._prepared.popleft()
            if not worker.ended.done():
                return worker
            worker.connection.close()
        return template.prepare()


def _start_waiting(queue: TurnQueue) -> None:
    """Give free slots to those who wait, in whichever pool."""
    while (started := queue.start_next()) is not None:
        started.set_result(None)


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield number
    finally:
        os.close(number)


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
        raise JobFailed(reason_of(status))
    reply = messages.decode(received) or {}
    if "out_of_memory" in reply:
        raise JobFailed(FailureReason.MEMORY)
    result = reply.get("result")
    if not isinstance(result, dict):
        logger.error("a worker failed: %s", reply.get("failed", f"wait status {status}"))
        raise JobFailed(FailureReason.CRASH)
    return result
