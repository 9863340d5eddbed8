"""`/graphql` over a WebSocket: the protocol `graphql-transport-ws`.

    GREETING  accepted; waits for `connection_init`, with credentials unless they are in headers
    OPEN      operations run, each with an id chosen by the client
    CLOSED    nothing more is read or sent

A connection is in the same registry as those of the native protocol: its credentials are checked
several times a second, it counts towards the same quotas, and its subscriptions are in the tenant's
live list.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from dataclasses import dataclass

from graphql import GraphQLError, OperationType

from connections import callers as socket_callers
from connections import messages
from connections.callers import ConnectionCaller, Handshake
from connections.close_codes import CloseReason
from connections.connection_recorder import ConnectionRecorder, OperationRecord
from connections.connection_registry import ConnectionRegistry, Verdict
from connections.consumer import Serve, WebSocketConsumer
from connections.frame_delivery import FrameDelivery
from connections.outgoing import Outgoing
from connections.subscriptions import OpenSubscription, Subscriber, SubscriptionKinds
from data_plane.calls import check_rate_limits
from foundation import request_context
from foundation.api.problems import translate
from foundation.api.rendering import exact_json
from foundation.asgi import App, Receive, Send
from foundation.errors import ApiError, TooManySubscriptions, Unauthenticated
from foundation.json_types import JsonObject
from rillbase_server.graphql import failures, persisted_operations
from rillbase_server.graphql.assembly import Schemas
from rillbase_server.graphql.http import PATH
from rillbase_server.graphql.internal_request import InternalRequests
from rillbase_server.graphql.live import FrameBuffer, LiveContext, LiveMessage
from rillbase_server.graphql.operations import (
    GraphqlRequest,
    OperationRejected,
    OperationStream,
    answer,
    start_subscription,
)
from rillbase_server.graphql.socket_messages import (
    CloseRequested,
    close_request_after,
    id_of,
    object_of,
    read_message,
)

SUBPROTOCOL = "graphql-transport-ws"
GREETING_S = 5.0
LAST_WORDS_S = 2.0
MAX_OPERATIONS = 1_000


@dataclass(frozen=True, slots=True)
class GraphqlServer:
    """The shared state of a process's connections."""

    #: Executes the REST calls that correspond to fields.
    app: App
    schemas: Schemas
    kinds: SubscriptionKinds
    registry: ConnectionRegistry


class GraphqlConsumer(WebSocketConsumer):
    """The protocol graphql-transport-ws at `/graphql`."""

    def __init__(self, server: GraphqlServer) -> None:
        super().__init__()
        self._server = server

    async def opened(self) -> Serve | None:
        self.scope["state"]["route"] = PATH
        handshake = Handshake.of(self.scope)
        if SUBPROTOCOL not in self.scope.get("subprotocols", ()):
            await self.send({"type": "websocket.close", "code": 4406, "reason": "Subprotocol"})
            return None
        await self.send({"type": "websocket.accept", "subprotocol": SUBPROTOCOL})
        return lambda receive, send: GraphqlConnection(self._server, handshake, receive, send).run()


class GraphqlConnection:
    """One client. `run` returns when it is over."""

    def __init__(
        self, server: GraphqlServer, handshake: Handshake, receive: Receive, send: Send
    ) -> None:
        self.id = secrets.token_hex(8)
        self.caller: ConnectionCaller | None = None
        self.kinds = server.kinds
        self._server = server
        self._handshake = handshake
        self._recorder = ConnectionRecorder(PATH, handshake.request_id)
        #: The handshake with the current credentials, for calls of the control plane.
        self._scope = handshake.scope
        self._receive = receive
        self._send = send
        delivery = FrameDelivery(handshake.scope, send, self._recorder.sent)
        self._outgoing = Outgoing(
            delivery.when_possible, lambda: self._close(None), delivery.at_once
        )
        self._operations: dict[str, asyncio.Task[None]] = {}
        self._subscriptions: dict[str, OpenSubscription] = {}
        self._closing: asyncio.Future[CloseRequested | None] = (
            asyncio.get_running_loop().create_future()
        )

    async def run(self) -> None:
        """Serve the client until it disconnects or is disconnected."""
        reader = asyncio.create_task(self._read())
        reader.add_done_callback(self._reading_ended)
        try:
            closing = await self._closing
            self._server.registry.leave(self)
            self._recorder.closed(CloseReason.GONE.code if closing is None else closing.code)
            if closing is not None and not self._outgoing.is_closed:
                await self._send_close(closing)
        finally:
            tasks = (reader, *self._operations.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._outgoing.close()
            self._server.registry.leave(self)

    def _reading_ended(self, reader: asyncio.Task[None]) -> None:
        if not reader.cancelled():
            self._close(close_request_after(reader))

    async def _send_close(self, closing: CloseRequested) -> None:
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(LAST_WORDS_S):
                await self._outgoing.finish()
                await self._send(
                    {"type": "websocket.close", "code": closing.code, "reason": closing.reason}
                )

    def _close(self, closing: CloseRequested | None) -> None:
        if not self._closing.done():
            self._closing.set_result(closing)

    # Interface for the registry

    @property
    def is_judged(self) -> bool:
        return self.caller is not None and not self._closing.done()

    @property
    def busy(self) -> bool:
        return not self._outgoing.is_empty

    @property
    def subscriptions(self) -> list[OpenSubscription]:
        return list(self._subscriptions.values())

    def notify(self, frame: bytes) -> None:
        """Translate a broadcast message of the server to this protocol."""
        kind = json.loads(frame)["type"]
        if kind == "heartbeat":
            self._outgoing.put(b'{"type":"ping"}')
        elif kind == "goodbye":
            self._close(CloseRequested(1012, "the server is restarting"))

    def end(self, name: str, error: ApiError) -> bool:
        subscription = self._subscriptions.get(name)
        if subscription is None:
            return False
        subscription.end(error)
        return True

    async def judge(self, verdict: Verdict) -> None:
        caller, refused = verdict
        if refused is not None:
            self._close(CloseRequested(4403, refused.code))
        elif caller is not None and self.caller is not None and caller != self.caller:
            self.caller = caller
            for name, subscription in list(self._subscriptions.items()):
                await subscription.judge(self._subscriber(name))

    # Interface for operations

    async def register(self, name: str, feed: FrameBuffer) -> OpenSubscription:
        """Count a new subscription."""
        caller, request_id = self._open_caller(), self._handshake.request_id
        subscription = self._subscriptions[name] = OpenSubscription(
            name, feed, request_id, self._forget_subscription
        )
        try:
            await self._server.registry.starts.admit(subscription, caller)
        except BaseException:
            self._forget_subscription(subscription)
            raise
        return subscription

    def _forget_subscription(self, subscription: OpenSubscription) -> None:
        if self._subscriptions.get(subscription.name) is subscription:
            del self._subscriptions[subscription.name]
            self._server.registry.subscription_ended(self._open_caller())

    def _subscriber(self, name: str) -> Subscriber:
        caller = self._open_caller()
        return Subscriber(caller.principal, caller.tenant, self.id, name)

    def _open_caller(self) -> ConnectionCaller:
        if self.caller is None:
            raise Unauthenticated("The connection is not open.")
        return self.caller

    # Reading messages

    async def _read(self) -> None:
        try:
            async with asyncio.timeout(GREETING_S):
                await self._greet()
        except TimeoutError:
            raise CloseRequested(4408, "Connection initialisation timeout") from None
        while True:
            message = await read_message(self._receive, self._recorder)
            match message.get("type"):
                case "ping":
                    self._outgoing.put(b'{"type":"pong"}')
                case "pong":
                    pass
                case "subscribe":
                    self._start_operation(message)
                case "complete":
                    task = self._operations.pop(id_of(message), None)
                    if task is not None:
                        task.cancel()
                case "connection_init":
                    raise CloseRequested(4429, "Too many initialisation requests")
                case _:
                    raise CloseRequested(4400, "Invalid message")
            await self._outgoing.room()

    async def _greet(self) -> None:
        message = await read_message(self._receive, self._recorder)
        while message.get("type") in ("ping", "pong"):
            message = await read_message(self._receive, self._recorder)
        if message.get("type") != "connection_init":
            raise CloseRequested(4401, "Unauthorized")
        try:
            if self._handshake.has_credentials:
                caller = await socket_callers.by_headers(self._handshake)
            else:
                payload = exact_json({**object_of(message.get("payload")), "type": "hello"})
                hello = messages.read(payload)
                caller = await socket_callers.by_message(self._handshake, hello)
                self._scope = socket_callers.scope_of(self._handshake, hello)
            await self._server.registry.admit(self, caller)
        except ApiError as error:
            code = {401: 4401, 403: 4403, 429: 4429}.get(error.status, 4400)
            raise CloseRequested(code, str(error)) from None
        self.caller = caller
        self._recorder.opened(caller)
        self._outgoing.put(b'{"type":"connection_ack"}')

    def _start_operation(self, message: JsonObject) -> None:
        name = id_of(message)
        if name in self._operations:
            raise CloseRequested(4409, f"Subscriber for {name} already exists")
        record = OperationRecord(self._recorder, self._open_caller())
        task = asyncio.create_task(self._run(name, message.get("payload"), record))
        self._operations[name] = task
        task.add_done_callback(lambda done: self._forget(name, done))

    def _forget(self, name: str, task: asyncio.Task[None]) -> None:
        if self._operations.get(name) is task:
            del self._operations[name]

    async def _run(self, name: str, payload: object, record: OperationRecord) -> None:
        """Run one operation to completion, and report the result."""
        request_context.error_code.set("")
        try:
            self._check_room()
            await self._answer(name, GraphqlRequest.read(payload), record)
        except OperationRejected as error:
            self._queue_message("error", name, error.errors)
        except GraphQLError as error:
            self._queue_message("error", name, [failures.formatted(error)])
        except Exception as error:  # noqa: BLE001 -- every error becomes a message
            self._queue_message("error", name, [failures.of(translate(error))])
        else:
            self._queue_message("complete", name)
        record.complete()

    def _check_room(self) -> None:
        if len(self._operations) > MAX_OPERATIONS:
            raise TooManySubscriptions(f"A connection may run at most {MAX_OPERATIONS} operations.")

    async def _answer(self, name: str, request: GraphqlRequest, record: OperationRecord) -> None:
        caller = self._open_caller()
        await check_rate_limits(caller.principal, caller.tenant, None)
        inner = InternalRequests(self._server.app, self._scope)
        context = LiveContext(
            caller.principal,
            caller.tenant,
            self._handshake.head,
            inner,
            _OperationAdapter(self, name),
        )
        text = await persisted_operations.text_of(request, context)
        texts = await self._server.schemas.of(caller.tenant.id)
        prepared = await texts.prepare(text, request.name, context.party)
        await persisted_operations.keep(request, context)
        if prepared.kind is OperationType.SUBSCRIPTION:
            stream = await start_subscription(prepared, request.variables, context)
            record.complete()
            await self._stream(name, stream)
        else:
            response = await answer(prepared, request.variables, context)
            head = exact_json({"id": name, "type": "next"})
            self._outgoing.put(head[:-1] + b',"payload":' + response + b"}")

    async def _stream(self, name: str, stream: OperationStream) -> None:
        try:
            async for event in stream.source:
                rendered = await stream.rendered(event)
                if isinstance(event, LiveMessage) and event.resume is not None:
                    rendered["extensions"] = {"resume": event.resume}
                await self._send_and_wait(
                    exact_json({"id": name, "type": "next", "payload": rendered})
                )
        finally:
            await stream.source.aclose()

    async def _send_and_wait(self, frame: bytes) -> None:
        """Send a frame, and wait until it has been sent. A client that does not read blocks only
        its own streams.
        """
        sent = asyncio.Event()
        self._outgoing.put(frame, lambda _: sent.set())
        await sent.wait()

    def _queue_message(self, kind: str, name: str, payload: object = None) -> None:
        message: dict[str, object] = {"id": name, "type": kind}
        if payload is not None:
            message["payload"] = payload
        self._outgoing.put(exact_json(message))


@dataclass(frozen=True, slots=True)
class _OperationAdapter:
    """The interface of a connection for one of its operations."""

    connection: GraphqlConnection
    name: str

    @property
    def kinds(self) -> SubscriptionKinds:
        return self.connection.kinds

    async def register(self, feed: FrameBuffer) -> OpenSubscription:
        return await self.connection.register(self.name, feed)

    def unregister(self, subscription: OpenSubscription) -> None:
        subscription.close()
        self.connection._forget_subscription(subscription)

    def subscriber(self) -> Subscriber:
        return self.connection._subscriber(self.name)
