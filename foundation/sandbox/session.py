"""A job with which the server talks for a while, and which streams its result.

The worker blocks while the server does not read, so neither side buffers the whole result. It is
killed at its deadline, when its folder exceeds the quota, and when the session is closed.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from foundation.json_types import JsonObject
from foundation.sandbox import messages
from foundation.sandbox.failures import FailureReason, JobFailed, reason_of
from foundation.sandbox.template_client import SandboxWorker, Template, TemplateFailed

logger = logging.getLogger(__name__)

MAX_MESSAGE_BYTES = 4 * 1024 * 1024
_PART_BYTES = 64 * 1024
_QUOTA_CHECK_S = 0.1
#: More files than this in the worker's folder count as exceeding the quota.
_MAX_FILES = 1_000


class Session:
    """The server's side of a running job."""

    def __init__(self, template: Template, worker: SandboxWorker) -> None:
        self._template = template
        self._job = worker.job
        self._ended = worker.ended
        self._connection = worker.connection
        self._loop = asyncio.get_running_loop()
        self._left = 0
        #: Why the worker has ended early, once that is known.
        self.failure: FailureReason | None = None
        #: Why the server has killed the worker, if it has.
        self._killed: FailureReason | None = None
        self._timers: list[asyncio.TimerHandle] = []

    def end_after(self, deadline_s: float) -> None:
        """Kill the worker at its deadline, even if nobody is waiting for it."""
        timer = self._loop.call_later(deadline_s, self._kill, FailureReason.DEADLINE)
        self._timers = [timer]

    def bound_folder(self, folder: Path, max_bytes: int) -> None:
        """Kill the worker when its folder has more than `max_bytes`."""
        if _exceeds(folder, max_bytes):
            self._kill(FailureReason.TEMPORARY_SPACE)
        elif self._killed is None:
            check = self._loop.call_later(_QUOTA_CHECK_S, self.bound_folder, folder, max_bytes)
            self._timers[1:] = [check]

    async def ask(self, request: JsonObject, files: Sequence[int] = ()) -> JsonObject:
        """Send a request, and return the reply."""
        head, body = messages.encode(request)
        try:
            messages.send_head(self._connection, head, files)
            await self._loop.sock_sendall(self._connection, body)
        except (BrokenPipeError, ConnectionResetError):
            await self._fail()
        reply = await self.receive()
        if isinstance(reply, bytes):
            raise JobFailed(FailureReason.CRASH)
        return reply

    async def receive(self) -> JsonObject | bytes:
        """Return the next message or the next bytes of the stream, or raise `JobFailed`."""
        if self._left == 0:
            length = messages.length_of(await self._exactly(messages.HEAD_BYTES))
            if not length & messages.STREAM:
                return await self._message(length)
            self._left = length & ~messages.STREAM
        part = await self._some(min(self._left, _PART_BYTES))
        self._left -= len(part)
        return part

    async def aclose(self) -> None:
        """End the worker, and wait until it has ended."""
        for timer in self._timers:
            timer.cancel()
        self._killed = self._killed or FailureReason.CRASH
        self._connection.close()
        self._template.kill(self._job)
        with suppress(TemplateFailed):
            await asyncio.shield(self._ended)

    def _kill(self, reason: FailureReason) -> None:
        self._killed = self._killed or reason
        self._template.kill(self._job)

    async def _message(self, length: int) -> JsonObject:
        if length > MAX_MESSAGE_BYTES:
            raise JobFailed(FailureReason.CRASH)
        message = messages.decode(messages.head_of(length) + await self._exactly(length))
        if message is None or "failed" in message:
            logger.error("a worker failed: %s", (message or {}).get("failed"))
            raise JobFailed(FailureReason.CRASH)
        return message

    async def _exactly(self, count: int) -> bytes:
        received = bytearray()
        while len(received) < count:
            received += await self._some(min(count - len(received), _PART_BYTES))
        return bytes(received)

    async def _some(self, max_bytes: int) -> bytes:
        try:
            part = await self._loop.sock_recv(self._connection, max_bytes)
        except (ConnectionResetError, OSError):
            part = b""
        if not part:
            await self._fail()
        return part

    async def _fail(self) -> None:
        """Raise the reason why the worker has ended early."""
        try:
            reason = reason_of(await asyncio.shield(self._ended))
        except TemplateFailed:
            reason = FailureReason.CRASH
        self.failure = self._killed or reason
        raise JobFailed(self.failure)


def _exceeds(folder: Path, max_bytes: int) -> bool:
    total = count = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                total += entry.stat(follow_symlinks=False).st_blocks * 512
            count += 1
            if total > max_bytes or count > _MAX_FILES:
                return True
    return False
