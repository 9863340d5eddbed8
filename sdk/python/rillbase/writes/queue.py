"""Writes that wait for a connection, however long it takes, and survive the program if they are
stored in a file.

They are sent one by one in the order in which they were made. A write that the server rejects is
reverted and removed; after a network failure nothing changes until the next attempt. The
idempotency key makes a write that was sent twice take effect once, as long as the server keeps
keys: an older write whose outcome is unknown is abandoned instead.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from rillbase.backoff import RECONNECT
from rillbase.errors import ClientClosed, OutcomeUnknown, QueueFailed, RillbaseError
from rillbase.http import Http
from rillbase.listeners import log, notify
from rillbase.local.pending import LocalWrites, UnconfirmedWrite
from rillbase.writes.job import WriteJob, confirm, read_job
from rillbase.writes.store import WriteStore

#: The server remembers idempotency keys for 24 hours.
REMEMBERED_S = 23 * 3600.0
OnQueueError: TypeAlias = Callable[[RillbaseError], object]


@dataclass(eq=False, slots=True)
class QueueEntry:
    """A queued write."""

    number: int
    job: WriteJob
    pending: Sequence[UnconfirmedWrite]
    #: The caller that waits for the response; None: the program that made the write has ended.
    answer: asyncio.Future[Any] | None
    sent_at_s: float | None = None


class QueueOutbox:
    """Stores writes until the server has answered them."""

    def __init__(
        self, http: Http, local: LocalWrites, store: WriteStore, on_error: OnQueueError | None
    ) -> None:
        self._http = http
        self._local = local
        self._store = store
        self._on_error = on_error or _log
        self._failures = 0
        self._is_closed = False
        self._again = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._entries = deque(
            QueueEntry(stored.number, job, local.begin(job.operations), None, stored.sent_at_s)
            for stored in store.load()
            for job in [read_job(stored.text)]
        )
        self._number = self._entries[-1].number if self._entries else 0

    def __len__(self) -> int:
        return len(self._entries)

    async def submit(self, job: WriteJob) -> Any:
        if self._is_closed:
            raise ClientClosed
        self._number += 1
        answer = asyncio.get_running_loop().create_future()
        entry = QueueEntry(self._number, job, self._local.begin(job.operations), answer)
        self._entries.append(entry)
        try:
            await self._update_store(self._store.put(entry.number, job.text()))
            self.start()
            return await asyncio.shield(answer)
        except asyncio.CancelledError:
            # It is sent anyway, and error listeners are called.
            entry.answer = None
            self.start()
            raise

    def start(self) -> None:
        """Start sending the queue, unless it is being sent already."""
        if self._is_closed or not self._entries:
            return
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="rillbase-queue")

    def retry_now(self) -> None:
        """Retry immediately: the network is available again."""
        self._again.set()

    async def close(self) -> None:
        """Stop. Queued writes stay in the file, if there is one."""
        self._is_closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for entry in self._entries:
            if entry.answer is not None and not entry.answer.done():
                entry.answer.set_exception(ClientClosed())
        await asyncio.to_thread(self._store.close)

    async def _run(self) -> None:
        while self._entries:
            entry = self._entries[0]
            if await self._settle(entry):
                self._entries.popleft()
                await self._update_store(self._store.remove(entry.number))

    async def _settle(self, entry: QueueEntry) -> bool:
        """Try to send a write; return whether it is done, by success or rejection."""
        try:
            await self._mark(entry)
            answer = await self._http.call(entry.job.request)
        except RillbaseError as error:
            if error.is_temporary:
                self._failures += 1
                await self._pause(RECONNECT.wait_s(self._failures))
                return False
            self._local.undo(entry.pending)
            self._fail(entry, error)
            return True
        self._failures = 0
        confirm(self._local, entry.pending, answer)
        if entry.answer is not None and not entry.answer.done():
            entry.answer.set_result(answer)
        return True

    async def _mark(self, entry: QueueEntry) -> None:
        """Record when a write was first sent; raise if it is too late to retry it."""
        now_s = time.time()
        if entry.sent_at_s is None:
            entry.sent_at_s = now_s
            await self._update_store(self._store.mark(entry.number, now_s))
        elif now_s - entry.sent_at_s > REMEMBERED_S:
            raise OutcomeUnknown

    async def _pause(self, wait_s: float) -> None:
        self._again.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._again.wait()

    def _fail(self, entry: QueueEntry, error: RillbaseError) -> None:
        if entry.answer is not None and not entry.answer.done():
            entry.answer.set_exception(error)
        elif entry.answer is None:
            notify(self._on_error, error)

    async def _update_store(self, work: Coroutine[Any, Any, None]) -> None:
        """Store a write; a full disk must not stop the writes themselves."""
        try:
            await work
        except QueueFailed as error:
            notify(self._on_error, error)


def _log(error: RillbaseError) -> None:
    log.error("A queued write failed: %s", error)
