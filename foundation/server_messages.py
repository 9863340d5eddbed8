"""Messages from one server process to others, over the channel layer (Channels, on Valkey).

A message names what has changed, and the receiver reads it. It carries no authority: one that is
lost, late, repeated or forged affects only when a process reads. Whatever a message speeds up also
happens without it, within a second.

A group is a set of processes: `SERVERS` are all that serve clients, and a tenant's group those that
it has connections to. `connections/server_channel.py` joins them.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from uuid import UUID

from channels.layers import BaseChannelLayer, get_channel_layer
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from foundation.json_types import JsonObject
from foundation.metrics import SERVER_MESSAGES

log = logging.getLogger(__name__)

#: The layer's name in Django's settings. Were it `default`, Channels would make a channel for each
#: consumer, which would then end with Valkey.
LAYER = "servers"
SERVERS = "servers"
#: `channels_redis` waits this long for a message in one blocking read.
BLOCKING_READ_S = 5
#: Longer than the blocking read, which would otherwise fail whenever nothing is sent meanwhile.
SOCKET_TIMEOUT_S = BLOCKING_READ_S + 3
CONNECT_TIMEOUT_S = 1.0
#: Undelivered messages expire after this time.
EXPIRY_S = 30
#: Membership ends unless it is renewed, so that a process which died is forgotten.
GROUP_EXPIRY_S = 2 * 3600
#: Messages that may wait for one process.
CAPACITY = 1_000
#: Sending takes no longer, and no more messages than these are being sent.
SEND_TIMEOUT_S = 1.0
MAX_PENDING = 1_000


def tenant_group(tenant_id: UUID) -> str:
    """Return the group of the processes to which a tenant has connections."""
    return f"tenant.{tenant_id}"


def layer_settings(url: str) -> dict[str, object]:
    """Return Django's settings of the channel layer for a Valkey server."""
    host = {
        "address": url,
        "socket_timeout": SOCKET_TIMEOUT_S,
        "socket_connect_timeout": CONNECT_TIMEOUT_S,
        # The listener reconnects, and a sender does not wait.
        "retry": Retry(NoBackoff(), 0),
    }
    return {
        "BACKEND": "channels_redis.core.RedisChannelLayer",
        "CONFIG": {
            "hosts": [host],
            "prefix": "{rillbase}:layer:",
            "expiry": EXPIRY_S,
            "group_expiry": GROUP_EXPIRY_S,
            "capacity": CAPACITY,
        },
    }


def channel_layer() -> BaseChannelLayer:
    """Return the channel layer of this installation."""
    layer = get_channel_layer(LAYER)
    if layer is None:
        raise LookupError("the settings have no channel layer")
    return layer


class MessageSender:
    """Sends from any thread without waiting: an event loop in a dedicated thread does it."""

    def __init__(self, layer: Callable[[], BaseChannelLayer] = channel_layer) -> None:
        self._layer = layer
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        #: The process that the loop runs in: a fork inherits no threads.
        self._process = 0
        self._pending: set[Future[None]] = set()

    def send(self, group: str, message: JsonObject) -> None:
        """Send a message to the processes of a group. It is lost while Valkey is unavailable."""
        with self._lock:
            loop = self._running()
            if len(self._pending) >= MAX_PENDING:
                SERVER_MESSAGES.labels("lost").inc()
                return
            sending = asyncio.run_coroutine_threadsafe(self._send(group, message), loop)
            self._pending.add(sending)
        sending.add_done_callback(self._pending.discard)

    def flush(self) -> None:
        """Wait until everything is sent or lost."""
        for sending in list(self._pending) if self._process == os.getpid() else ():
            with suppress(TimeoutError):
                sending.result(SEND_TIMEOUT_S)

    async def _send(self, group: str, message: JsonObject) -> None:
        try:
            async with asyncio.timeout(SEND_TIMEOUT_S):
                await self._layer().group_send(group, message)
        except (RedisError, OSError, TimeoutError) as error:
            SERVER_MESSAGES.labels("lost").inc()
            log.debug("a message to other servers was lost: %s", error)
        except Exception:
            SERVER_MESSAGES.labels("lost").inc()
            log.exception("a message to other servers could not be sent")
        else:
            SERVER_MESSAGES.labels("sent").inc()

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._loop is None or self._process != os.getpid():
            self._loop, self._process, self._pending = asyncio.new_event_loop(), os.getpid(), set()
            threading.Thread(
                target=self._loop.run_forever, name="server-messages", daemon=True
            ).start()
            # A command may end right after its commit.
            atexit.register(self.flush)
        return self._loop


_sender = MessageSender()
#: Sends a message to the processes of a group, from any thread, without waiting.
send = _sender.send
