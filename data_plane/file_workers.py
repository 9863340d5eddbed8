"""Decodes callers' files in sandboxed workers; failures of a worker become errors of the API.

This process opens the files and sets the worker's limits; it never reads a file's content itself.
Files of one tenant queue behind one another and do not delay other tenants'
(`foundation.sandbox.pool`).
"""

from __future__ import annotations

import asyncio
import resource
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar
from uuid import UUID

from foundation.environment import environment
from foundation.errors import ApiError, RateLimited, Unavailable, UploadLimitExceeded
from foundation.json_types import JsonObject
from foundation.per_loop import PerLoop
from foundation.sandbox.failures import FailureReason, JobFailed
from foundation.sandbox.fair_queue import FairQueue, QueueFull
from foundation.sandbox.limits import JobLimits
from foundation.sandbox.pool import TurnQueue, WorkerPool
from foundation.sandbox.template_client import TemplateFailed

T = TypeVar("T")

MIB = 1024 * 1024
#: Maximum number of a tenant's files waiting for a worker of one web server.
MAX_WAITING = 100
_IDLE_S = 60.0
#: CPU time in seconds for a small file, per additional MiB, and at most.
_CPU_S, _CPU_S_A_MIB, _MAX_CPU_S = 10, 2, 600
#: Wall-clock limit as a multiple of CPU time, for waits for processors or the disk.
_DEADLINE_RATIO = 3
_EXPLANATIONS = {
    FailureReason.MEMORY: "takes more memory than allowed",
    FailureReason.CPU_TIME: "takes more CPU time than allowed",
    FailureReason.DEADLINE: "takes longer than allowed",
}


def _new_queue() -> TurnQueue:
    return FairQueue(environment().rillbase_upload_workers, MAX_WAITING)


#: The workers of all decoders together are bounded: an operator reserves memory for them.
_queues = PerLoop(_new_queue)


class FileWorkers:
    """Workers that run one decoder."""

    def __init__(self, name: str, decoder: str, noun: str, crashed: type[ApiError]) -> None:
        """`noun` names a file in messages; `crashed` is the error when one ends its worker."""
        self._noun = noun
        self._crashed = crashed
        self._pools = PerLoop(lambda: WorkerPool(name, decoder, _queues.get(), idle_s=_IDLE_S))

    @asynccontextmanager
    async def turn(self, tenant_id: UUID) -> AsyncIterator[None]:
        """Wait for a worker, and hold it for the block, which runs one job."""
        noun = self._noun
        try:
            async with self._pools.get().turn(str(tenant_id)):
                yield
        except QueueFull:
            detail = f"{MAX_WAITING} files of the tenant are already waiting."
            raise RateLimited(detail, headers={"Retry-After": "5"}) from None
        except JobFailed as error:
            if error.reason is FailureReason.CRASH:
                raise self._crashed(f"The decoder failed while reading the {noun}.") from None
            detail = f"Decoding the {noun} {_EXPLANATIONS[error.reason]}."
            raise UploadLimitExceeded(detail) from None
        except TemplateFailed:
            detail = f"No worker can decode the {noun} at the moment. Retry."
            raise Unavailable(detail) from None

    async def run(self, request: JsonObject, files: Sequence[int], limits: JobLimits) -> JsonObject:
        """Return the decoder's result. Call it within a turn. Cancellation ends the worker."""
        return await self._pools.get().run(request, files, limits)

    async def close(self) -> None:
        """End the workers of this event loop."""
        if (pool := self._pools.pop()) is not None:
            await pool.aclose()


def limits_for(body_bytes: int, file_bytes: int) -> JobLimits:
    """Return the limits for decoding a body, which is mapped and not read into memory."""
    cpu_s = min(_CPU_S + body_bytes // MIB * _CPU_S_A_MIB, _MAX_CPU_S)
    return JobLimits(
        memory_bytes=environment().rillbase_upload_memory_mib * MIB + body_bytes,
        cpu_s=cpu_s,
        deadline_s=cpu_s * _DEADLINE_RATIO,
        file_bytes=min(file_bytes, _own_file_bytes()),
    )


async def run_to_completion(work: Callable[[], T]) -> T:
    """Run in a thread. If cancelled, wait for it, since it opens, stores or closes files."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


def _own_file_bytes() -> int:
    """Return this process's file size limit; a worker's limit cannot exceed it."""
    soft, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    return 2**62 if soft == resource.RLIM_INFINITY else soft
