"""Sends writes as soon as they are made: those to one document in their order, others concurrently.

Pending writes are visible locally at once, and reverted if they are rejected.
"""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from rillbase.http import Http
from rillbase.local.pending import LocalWrites
from rillbase.writes.job import WriteJob, confirm


class WriteOutbox(Protocol):
    """The path by which writes are sent."""

    async def submit(self, job: WriteJob) -> Any:
        """Return the body of the server's response."""


class DirectOutbox:
    """Sends immediately; a write that does not reach the server fails."""

    def __init__(self, http: Http, local: LocalWrites, *, is_optimistic: bool) -> None:
        self._http = http
        self._local = local
        self._is_optimistic = is_optimistic
        #: By lane, the end of its last job, whether it succeeds or fails.
        self._lanes: dict[str, asyncio.Future[None]] = {}

    async def submit(self, job: WriteJob) -> Any:
        pending = self._local.begin(job.operations) if self._is_optimistic else []
        lanes = job.lanes()
        before = {self._lanes[lane] for lane in lanes if lane in self._lanes}
        end = asyncio.get_running_loop().create_future()
        self._lanes.update(dict.fromkeys(lanes, end))
        try:
            if before:
                await asyncio.wait(before)
            answer = await self._http.call(job.request)
        except BaseException:
            self._local.undo(pending)
            raise
        finally:
            end.set_result(None)
            for lane in lanes:
                if self._lanes.get(lane) is end:
                    del self._lanes[lane]
        confirm(self._local, pending, answer)
        return answer
