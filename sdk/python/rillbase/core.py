"""The parts of a client, put together."""

from __future__ import annotations

from dataclasses import dataclass

from rillbase.arguments import check_name, check_options
from rillbase.connection import ConnectionState, RealtimeConnection
from rillbase.credentials import Credentials
from rillbase.http import Http
from rillbase.local.pending import LocalWrites
from rillbase.options import TIMEOUT_S, Options
from rillbase.watchers import Watchers
from rillbase.writes.outbox import DirectOutbox, WriteOutbox
from rillbase.writes.queue import QueueOutbox
from rillbase.writes.store import IN_MEMORY, WriteStore


@dataclass(frozen=True, slots=True)
class ClientCore:
    """The parts of a client, as its collections use them."""

    http: Http
    connection: RealtimeConnection
    local: LocalWrites
    outbox: WriteOutbox
    queue: QueueOutbox | None
    watchers: Watchers

    async def close(self) -> None:
        """Close everything. Queued writes stay in the file."""
        await self.watchers.close()
        if self.queue is not None:
            await self.queue.close()
        await self.connection.close()
        self.http.close()


def core(url: str, options: Options) -> ClientCore:
    """Create the parts according to the options."""
    check_name("The URL", url)
    check_options("A client", options, Options.__annotations__)
    credentials = Credentials(
        options.get("key"), options.get("token"), options.get("tenant"), options.get("get_token")
    )
    http = Http(url, credentials, options.get("timeout_s", TIMEOUT_S))
    connection = RealtimeConnection(url, credentials, options.get("silence_s"))
    local = LocalWrites()
    queue = _queue(http, local, options)
    if queue is not None:
        connection.listeners.add(lambda state: _retry_when_open(queue, state))
    direct = DirectOutbox(http, local, is_optimistic=options.get("optimistic", True))
    return ClientCore(
        http, connection, local, direct if queue is None else queue, queue, Watchers()
    )


def _queue(http: Http, local: LocalWrites, options: Options) -> QueueOutbox | None:
    queue_option = options.get("queue", False)
    if queue_option is False:
        return None
    store = WriteStore(IN_MEMORY if queue_option is True else queue_option)
    return QueueOutbox(http, local, store, options.get("on_queue_error"))


def _retry_when_open(queue: QueueOutbox, state: ConnectionState) -> None:
    """Retry queued writes: a restored connection shows that they can reach the server."""
    if state == "open":
        queue.retry_now()
