"""Calls of the storage node on behalf of a tenant, for the event loop.

Each tenant that is active in this process has its own connection; the one that has been idle the
longest is evicted for a new one. A call waits while the node restarts (`CALL_DEADLINE_S`) and is
then sent again. That is safe because every call is idempotent: publications have names and are
published once, and if a subscription is made twice, the first one is never read.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from uuid import UUID

from foundation.per_loop import PerLoop
from foundation.resp_pipeline import Argument
from storage_engine.node.access import NO_NAMESPACE, NodeCredentials, access
from storage_engine.node.refusals import as_api_error, unavailable
from storage_engine.node.wire import CommandRejected, NodeUnavailable, Reply, Wire

CONNECT_TIMEOUT_S = 1.0
ANSWER_TIMEOUT_S = 5.0
CALL_DEADLINE_S = 5.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 0.5
MAX_CONNECTIONS = 256


class StorageNodeClient:
    """The connections of one event loop."""

    def __init__(self) -> None:
        self._wires: OrderedDict[UUID, asyncio.Task[Wire]] = OrderedDict()

    async def call(self, tenant_id: UUID, *command: Argument) -> Reply:
        """Return the reply, or raise the error of the API that corresponds to the node's error."""
        try:
            return await self.try_call(tenant_id, *command)
        except CommandRejected as error:
            raise as_api_error(error) from None

    async def try_call(self, tenant_id: UUID, *command: Argument) -> Reply:
        """Return the reply; raise `CommandRejected`, or `Unavailable` if the node stays
        unavailable.
        """
        pause_s = FIRST_PAUSE_S
        try:
            async with asyncio.timeout(CALL_DEADLINE_S):
                while True:
                    try:
                        wire = await self._wire(tenant_id)
                        return await wire.call(*command)
                    except NodeUnavailable:
                        await asyncio.sleep(pause_s)
                        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        except TimeoutError:
            raise unavailable() from None

    async def call_once(self, tenant_id: UUID, *command: Argument) -> Reply:
        """Send a command that must not be repeated.

        It waits for a connection as other calls do, and is sent over it once: without a reply, it
        is unknown whether it was executed.
        """
        pause_s = FIRST_PAUSE_S
        try:
            async with asyncio.timeout(CALL_DEADLINE_S):
                while True:
                    try:
                        wire = await self._wire(tenant_id)
                    except NodeUnavailable:
                        await asyncio.sleep(pause_s)
                        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
                    else:
                        return await wire.call(*command)
        except (TimeoutError, NodeUnavailable):
            raise unavailable() from None

    async def aclose(self) -> None:
        """Close all connections; calls that wait for a reply fail."""
        while self._wires:
            _, task = self._wires.popitem()
            _drop(task)
        # Transports close in the loop's next iteration.
        await asyncio.sleep(0)

    async def _wire(self, tenant_id: UUID) -> Wire:
        task = self._wires.get(tenant_id)
        if task is None or _is_over(task):
            task = asyncio.create_task(opened(tenant_id))
            self._wires[tenant_id] = task
            while len(self._wires) > MAX_CONNECTIONS:
                _, oldest = self._wires.popitem(last=False)
                _drop(oldest)
        self._wires.move_to_end(tenant_id)
        return await asyncio.shield(task)


def new_wire() -> Wire:
    return Wire(answer_timeout_s=ANSWER_TIMEOUT_S)


async def opened(tenant_id: UUID, new: Callable[[], Wire] = new_wire) -> Wire:
    """Return a connection in a tenant's namespace, which is created if it is missing."""
    credentials = access()
    wire = new()
    try:
        await wire.open(credentials.parts, credentials.tenant(tenant_id), CONNECT_TIMEOUT_S)
    except CommandRejected as error:
        if error.code not in NO_NAMESPACE:
            raise
        await _create_namespace(credentials, tenant_id)
        wire = new()
        await wire.open(credentials.parts, credentials.tenant(tenant_id), CONNECT_TIMEOUT_S)
    return wire


async def _create_namespace(credentials: NodeCredentials, tenant_id: UUID) -> None:
    wire = new_wire()
    await wire.open(
        credentials.parts,
        [*credentials.administrator(), credentials.namespace_creation(tenant_id)],
        CONNECT_TIMEOUT_S,
    )
    wire.close()


def _is_over(task: asyncio.Task[Wire]) -> bool:
    if not task.done():
        return False
    return task.cancelled() or task.exception() is not None or task.result().closed


def _drop(task: asyncio.Task[Wire]) -> None:
    """Close a connection as soon as it is open."""
    task.add_done_callback(_close)


def _close(task: asyncio.Task[Wire]) -> None:
    if not task.cancelled() and task.exception() is None:
        task.result().close()


_clients = PerLoop(StorageNodeClient)


def client() -> StorageNodeClient:
    """Return the running loop's connections."""
    return _clients.get()


async def close() -> None:
    """Close the running loop's connections."""
    if (connections := _clients.pop()) is not None:
        await connections.aclose()
