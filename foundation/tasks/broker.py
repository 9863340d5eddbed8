"""Sends tasks to the broker, and fails fast when it is unavailable.

Celery's own publishing waits for the broker indefinitely. A dispatcher of the outbox need not wait:
the row stays in the outbox.
"""

from __future__ import annotations

import contextlib
import secrets
from typing import TYPE_CHECKING, cast

import redis
from kombu.exceptions import KombuError

from foundation.json_types import JsonObject
from foundation.tasks.app import app

if TYPE_CHECKING:
    from kombu.connection import Connection
    from kombu.messaging import Producer
    from kombu.transport.redis import Channel

    from foundation.models import OutboxTask

#: Name of the message header in which a task's context travels.
CONTEXT_HEADER = "rillbase"
#: The Valkey key that holds a random name of its data. It is created when it is missing.
DATA_KEY = "rillbase:task_broker_data"

_FAILING_FAST = {
    "max_retries": 0,
    "connect_retries_timeout": 1.0,
    "socket_connect_timeout": 1.0,
    "socket_timeout": 2.0,
}


class BrokerUnavailable(RuntimeError):
    """The broker did not accept a message."""


class Broker:
    """One connection to the broker, made when needed. For use by one thread."""

    def __init__(self) -> None:
        self._connection: Connection | None = None
        self._producer: Producer | None = None

    def data_id(self) -> str:
        """Return an id of the broker's data, or raise `BrokerUnavailable`.

        A different id means that messages may have been lost. A restarted server may have lost its
        last writes, so its `run_id` is part of the id. It does not change when a running server is
        emptied, but then the random name changes.
        """
        try:
            channel = cast("Channel", self._ready_connection().default_channel)
            with channel.client.pipeline(transaction=False) as pipeline:
                pipeline.info("server")
                pipeline.set(DATA_KEY, secrets.token_hex(8), nx=True)
                pipeline.get(DATA_KEY)
                server, _, name = pipeline.execute()
        except (KombuError, redis.RedisError, OSError) as error:
            self.close()
            raise BrokerUnavailable(f"{type(error).__name__}: {error}") from error
        return f"{server['run_id']}:{name.decode()}"

    def send(self, row: OutboxTask) -> None:
        """Send one task, or raise `BrokerUnavailable`. Its id becomes the message's."""
        self.send_task(
            row.name,
            row.arguments,
            queue=row.queue,
            task_id=str(row.id),
            context={
                "tenant_id": str(row.tenant_id) if row.tenant_id else None,
                "request_id": row.request_id,
                "attempt": row.attempt,
                "tracked": True,
            },
        )

    def send_task(
        self,
        name: str,
        arguments: JsonObject,
        *,
        queue: str,
        context: JsonObject,
        task_id: str | None = None,
    ) -> None:
        """Publish one message, or raise `BrokerUnavailable`."""
        try:
            app.send_task(
                name,
                kwargs=arguments,
                task_id=task_id,
                queue=queue,
                headers={CONTEXT_HEADER: context},
                # Celery logs these; arguments may contain addresses of users.
                argsrepr="",
                kwargsrepr="",
                producer=self._ready_producer(),
                retry=False,
                ignore_result=True,
            )
        except (KombuError, redis.RedisError, OSError) as error:
            self.close()
            raise BrokerUnavailable(f"{type(error).__name__}: {error}") from error

    def close(self) -> None:
        """Drop the connection; the next message opens a new one."""
        connection, self._connection, self._producer = self._connection, None, None
        if connection is not None:
            with contextlib.suppress(KombuError, redis.RedisError, OSError):
                connection.release()  # type: ignore[no-untyped-call]

    def _ready_connection(self) -> Connection:
        if self._connection is None:
            self._connection = app.connection_for_write(transport_options=_FAILING_FAST)
        return self._connection

    def _ready_producer(self) -> Producer:
        if self._producer is None:
            self._producer = app.amqp.Producer(self._ready_connection())
        return self._producer
