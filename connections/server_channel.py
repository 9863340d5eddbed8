"""Receives the messages of other server processes over this process's only channel. Connections do
not have their own channels: losing Valkey would end all of them, and a message to end one would
wait behind a client that does not read. The process's channel is in the group of all servers and in
one group for each tenant with a connection here.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Callable, Collection, Mapping
from uuid import UUID

from channels.layers import BaseChannelLayer
from redis.exceptions import RedisError

from foundation import server_messages
from foundation.json_types import JsonObject

log = logging.getLogger(__name__)

#: Groups expire after twice as long.
REJOIN_S = 3600.0
#: The group of all servers is joined again this often: a replica that took over may not know the
#: last joins. Groups of tenants without connections are left then.
SWEEP_S = 5.0
RECONNECT_S = 1.0
CANCEL_AGAIN_S = 0.1

#: Handles a message immediately; longer work is started as a task. May raise for a malformed
#: message.
Handler = Callable[[JsonObject], None]


class ServerChannel:
    """The channel of one server process, from `start` to `stop`."""

    def __init__(
        self,
        tenants: Callable[[], Collection[UUID]],
        handlers: Mapping[str, Handler],
        layer: BaseChannelLayer,
    ) -> None:
        """`handlers` are looked up by type; `tenants` are those with a connection here."""
        self._tenants = tenants
        self._handlers = handlers
        self._layer = layer
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        #: Of the current connection to Valkey.
        self._work: list[asyncio.Task[None]] = []
        self._channel = ""
        self._is_stopping = False
        #: The groups of the current connection to Valkey, and when each was joined.
        self.groups: dict[str, float] = {}

    async def start(self) -> None:
        self._channel = await self._layer.new_channel()
        self._task = asyncio.create_task(self._keep_listening())

    async def stop(self) -> None:
        # A cancelled read may fail with an error of its own, which hides the cancellation.
        self._is_stopping = True
        await _end([*self._work, *([self._task] if self._task is not None else [])])

    def tenants_changed(self) -> None:
        """Called when a tenant gets its first connection."""
        self._changed.set()

    async def _keep_listening(self) -> None:
        while not self._is_stopping:
            self.groups = {}
            try:
                await self._listen()
            except (RedisError, OSError) as error:
                log.info("messages of other servers cannot be received: %s", error)
            except Exception:
                log.exception("messages of other servers cannot be received")
            await asyncio.sleep(random.uniform(0.5, 1.5) * RECONNECT_S)  # noqa: S311 -- no secret

    async def _listen(self) -> None:
        """Stay in the groups and receive, until one of the two fails."""
        self._work = [
            asyncio.create_task(self._keep_joined()),
            asyncio.create_task(self._keep_receiving()),
        ]
        try:
            failed, _ = await asyncio.wait(self._work, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _end(self._work)
        for task in failed:
            task.result()

    async def _keep_joined(self) -> None:
        sweep_at = time.monotonic() + SWEEP_S
        while True:
            self._changed.clear()
            present = {server_messages.SERVERS, *map(_group, self._tenants())}
            for group in due(present, self.groups, time.monotonic()):
                await self._join(group)
            if time.monotonic() >= sweep_at:
                sweep_at = time.monotonic() + SWEEP_S
                await self._join(server_messages.SERVERS)
                for group in self.groups.keys() - present:
                    await self._layer.group_discard(group, self._channel)
                    del self.groups[group]
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SWEEP_S):
                    await self._changed.wait()

    async def _join(self, group: str) -> None:
        await self._layer.group_add(group, self._channel)
        self.groups[group] = time.monotonic()

    async def _keep_receiving(self) -> None:
        while True:
            self._handle(await self._layer.receive(self._channel))

    def _handle(self, message: JsonObject) -> None:
        handler = self._handlers.get(str(message.get("type")))
        if handler is None:
            # A newer server of a rolling update may have sent it.
            log.debug("a message of an unknown type was ignored")
            return
        try:
            handler(message)
        except Exception:
            log.exception("a message of another server could not be handled")


async def _end(tasks: Collection[asyncio.Task[None]]) -> None:
    """Cancel tasks until all have ended. The Valkey client writes under `asyncio.wait_for`, which
    on Python 3.11 loses a cancellation that arrives just after the write: a task cancelled once
    could receive for ever, in no group.
    """
    pending = set(tasks)
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=CANCEL_AGAIN_S)
    await asyncio.gather(*tasks, return_exceptions=True)


def due(present: Collection[str], joined: Mapping[str, float], now_s: float) -> list[str]:
    """Return the groups to join, or to join again, at a monotonic time."""
    return [group for group in present if joined.get(group, float("-inf")) + REJOIN_S <= now_s]


def _group(tenant: UUID) -> str:
    return server_messages.tenant_group(tenant)
