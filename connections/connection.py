"""The life of one connection, through the states of `connections.connection_state`.

Messages are read one by one. Work that takes time (a write, a query, a subscription's first result)
runs concurrently with the reading, up to a limit; beyond that nothing is read, and backpressure
makes the client wait. Responses are sent as soon as they are ready, except that writes to one
document are executed in the order in which they were sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Coroutine
from typing import TYPE_CHECKING

from connections import callers, frames, messages
from connections.callers import ConnectionCaller, Handshake
from connections.close_codes import CloseReason, code_for
from connections.connection_recorder import ConnectionRecorder
from connections.connection_state import ConnectionPhase, step
from connections.frame_delivery import FrameDelivery
from connections.greeting import greet
from connections.interruptible import Interruptible
from connections.message_calls import MessageCall
from connections.messages import Message
from connections.outgoing import Outgoing
from connections.products import Products
from connections.subscriptions import ConnectionSubscriptions, OpenSubscription, Subscriber
from connections.write_order import OrderedTurns
from data_plane.calls import check_rate_limits
from data_plane.internal_call import InternalCall
from data_plane.request_reader import EJSON_HEADER
from foundation import contention
from foundation.api.problems import translate
from foundation.asgi import MessageClaim, Receive, Send, text_of
from foundation.errors import (
    ApiError,
    BodyTooLarge,
    CredentialsExpired,
    InvalidBody,
    NotFound,
    TokenExpired,
    TooManySubscriptions,
)
from foundation.event_loop_budget import EventLoopBudget
from tenants import error_log

if TYPE_CHECKING:
    from connections.connection_registry import ConnectionRegistry, Verdict

PATH = "/v1/realtime"
#: An expired connection is closed unless `auth` arrives within this time.
EXPIRED_S = 60.0
MAX_AT_ONCE = 64
#: How long queued frames may take to leave when the server closes.
FLUSH_TIMEOUT_S = 2.0


class Connection:
    """One client. `run` returns when it is over."""

    def __init__(
        self,
        handshake: Handshake,
        receive: Receive,
        send: Send,
        products: Products,
        registry: ConnectionRegistry,
    ) -> None:
        self.id = secrets.token_hex(8)
        self.state = ConnectionPhase.GREETING
        self.caller: ConnectionCaller | None = None
        self.handshake = handshake
        self._request_id = handshake.request_id
        self._recorder = ConnectionRecorder(PATH, self._request_id)
        #: Documents are sent as canonical Extended JSON.
        self._canonical = False
        self._receive = receive
        self._send = send
        delivery = FrameDelivery(handshake.scope, send, self._delivered)
        self._calls = products.calls
        self._registry = registry
        self._outgoing = Outgoing(delivery.when_possible, self._on_client_gone, delivery.at_once)
        self._subscriptions = ConnectionSubscriptions(
            self._subscriber,
            self._request_id,
            products.kinds,
            registry.starts,
            self._outgoing,
            self._on_subscription_ended,
        )
        self._tasks: set[asyncio.Task[None]] = set()
        self._work_slots = asyncio.Semaphore(MAX_AT_ONCE)
        self._order = OrderedTurns()
        self._closing: CloseReason | None = None
        self._reading = Interruptible()
        self._expiry: asyncio.TimerHandle | None = None
        #: The memory of the message that was read last.
        self._claim: MessageClaim | None = None
        #: Pause before the next message is read.
        self._penalty_s = 0.0

    async def run(self) -> None:
        """Serve the client until it disconnects or is disconnected."""
        try:
            await self._disconnect(await self._read_until_end())
        finally:
            await self._subscriptions.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self._outgoing.close()

    async def _read_until_end(self) -> CloseReason:
        """Read until the connection ends; return why it ends."""
        reason = CloseReason.GONE
        try:
            await self._reading.run(self._read())
        except OSError:
            pass
        except Exception as failed:  # noqa: BLE001 -- the client receives it
            error = translate(failed)
            reason = CloseReason(code_for(error), error.code, error)
        self._closing = self._closing or reason
        return self._closing

    def close(self, closing: CloseReason) -> None:
        """End the connection."""
        if self._closing is None:
            self._closing = closing
            self._reading.interrupt()

    def _on_client_gone(self) -> None:
        self.close(CloseReason.GONE)

    def notify(self, frame: bytes) -> None:
        """Send a frame that belongs to no subscription."""
        if self.state is not ConnectionPhase.CLOSED:
            self._outgoing.put(frame)

    @property
    def is_judged(self) -> bool:
        """Whether its credentials are currently valid."""
        return self.state is ConnectionPhase.OPEN

    @property
    def busy(self) -> bool:
        """Whether frames wait, so that no heartbeat is needed."""
        return not self._outgoing.is_empty

    async def judge(self, verdict: Verdict) -> None:
        """Continue with the current rights of the credentials."""
        caller, refused = verdict
        if self.state is not ConnectionPhase.OPEN or self.caller is None:
            return
        if isinstance(refused, CredentialsExpired):
            self._expire()
        elif refused is not None:
            self._subscriptions.end_all(refused)
            self.close(CloseReason(code_for(refused), refused.code))
        elif caller is not None and caller.principal != self.caller.principal:
            await self._set_caller(caller)

    def end(self, name: str, error: ApiError) -> bool:
        """End one subscription; return whether it existed."""
        return self._subscriptions.end(name, error)

    @property
    def subscriptions(self) -> list[OpenSubscription]:
        return list(self._subscriptions)

    def _enter(self, state: ConnectionPhase) -> None:
        self.state = step(self.state, state)

    async def _read(self) -> None:
        """Authenticate the client, then handle messages until it disconnects."""
        caller = await self._admit()
        if caller is None:
            return
        self.caller = caller
        if self.state is ConnectionPhase.CLOSED:
            # Closed while it was admitted: it was not counted at that time and was not removed from
            # the count.
            self._registry.leave(self)
            return
        self._enter(ConnectionPhase.OPEN)
        self._recorder.opened(caller)
        self.notify(frames.welcome(self.id))
        budget = EventLoopBudget()
        while (text := await self._next(messages.MAX_BYTES)) is not None:
            await self._handle(text)
            # The message may be large, and the next one may arrive much later.
            del text
            await self._pause()
            await self._outgoing.room()
            if budget.is_spent:
                await budget.yield_if_spent()

    async def _admit(self) -> ConnectionCaller | None:
        """Return the caller once it may connect; record a rejection while its tenant is known."""
        try:
            greeting = await greet(self.handshake, self._next)
            if greeting is None:
                return None
            self._canonical = greeting.canonical
            if self.state is not ConnectionPhase.CLOSED:
                self._enter(ConnectionPhase.ADMITTING)
                await self._registry.admit(self, greeting.caller)
        except ApiError as error:
            error_log.note_refusal(error, "WebSocket hello")
            raise
        return greeting.caller

    def _delivered(self, size_bytes: int) -> None:
        if self.caller is not None:
            contention.tenants.record(self.caller.tenant.id)
        self._recorder.sent(size_bytes)

    async def _next(self, max_bytes: int) -> bytes | None:
        """Return the next message, or None if the client has disconnected."""
        received = await self._receive()
        if received["type"] == "websocket.disconnect":
            return None
        self._claim = received.get("claim")
        text = text_of(received)
        if text is None:
            raise InvalidBody("Messages must be text.")
        if len(text) > max_bytes:
            raise BodyTooLarge(f"A message may have at most {max_bytes} bytes.")
        self._recorder.received(len(text))
        return text

    async def _handle(self, text: bytes) -> None:
        """Handle a message. An invalid one is answered with an error; the connection stays open."""
        try:
            message = messages.read(text)
        except ApiError as error:
            self._refuse(None, error)
            return
        try:
            await self._dispatch(message)
        except Exception as error:  # noqa: BLE001 -- every error becomes a problem
            self._refuse(message, translate(error))

    async def _dispatch(self, message: Message) -> None:
        message.check()
        match message.type:
            case "ping":
                message.allow(())
                self.notify(frames.pong(message.id))
            case "unsubscribe":
                self._unsubscribe(message)
            case "auth":
                await self._auth(message)
            case "subscribe":
                # Not read meanwhile, a client that sends thousands costs nothing.
                await self._registry.starts.wait(self.caller)
                if self.state is ConnectionPhase.CLOSED:
                    return
                await self._registry.starts.metered(self.caller, self._subscribe(message))
            case kind if kind in self._calls:
                message.required_id()
                await self._start(message, self._perform(message, self._calls[kind]))
            case _:
                raise messages.wrong("type", "Unknown message type.")

    async def _subscribe(self, message: Message) -> None:
        subscription = self._subscriptions.reserve(message.required_id())
        work = self._subscriptions.open(subscription, message.value, self._current_caller)
        await self._start(message, self._open(message, work))

    async def _open(self, message: Message, work: Coroutine[None, None, None]) -> None:
        await self._registry.starts.metered(self.caller, work)
        message.name_objects()
        self._recorder.answered(self.caller, message)

    async def _start(self, message: Message, work: Coroutine[None, None, None]) -> None:
        """Start work that takes time; wait first while too much is running."""
        await self._work_slots.acquire()
        task = asyncio.create_task(self._run_guarded(message, work))
        self._tasks.add(task)
        task.add_done_callback(self._on_work_done)
        if (claim := self._claim) is not None:
            # The message stays in memory until the work on it is done.
            claim.retain()
            task.add_done_callback(lambda _: claim.release())

    def _on_work_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._work_slots.release()

    async def _run_guarded(self, message: Message, work: Coroutine[None, None, None]) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 -- every error becomes a problem
            self._refuse(message, translate(error))

    async def _pause(self) -> None:
        """Pause reading if too many requests were rejected."""
        rest_s, self._penalty_s = self._penalty_s, 0.0
        if rest_s > 0:
            await asyncio.sleep(rest_s)

    def _refuse(self, message: Message | None, error: ApiError) -> None:
        if error.status == TooManySubscriptions.status and self.caller is not None:
            rest_s = self._registry.penalty_delay.count_rejection(self.caller.tenant.id)
            self._penalty_s = max(self._penalty_s, rest_s)
        what, name = ("", None) if message is None else (message.type, message.id)
        error_log.note_refusal(error, f"WebSocket {what}".rstrip())
        if message is not None:
            self._recorder.refused(self.caller, message, error)
        self.notify(frames.error(name, error, self._request_id))

    async def _rate_limited_caller(self) -> ConnectionCaller:
        """Return the caller, if it may make requests now."""
        caller = self._current_caller()
        await check_rate_limits(caller.principal, caller.tenant, None)
        return caller

    def _current_caller(self) -> ConnectionCaller:
        """Return the caller, unless its token has expired."""
        if self.state is ConnectionPhase.EXPIRED or self.caller is None:
            raise TokenExpired("The token has expired. Send `auth` with a new one.")
        return self.caller

    async def _perform(self, message: Message, kind: MessageCall) -> None:
        call = kind.read(message)
        message.parameters.update(call.parameters)
        if self._canonical:
            call.headers[EJSON_HEADER] = "canonical"
        key = kind.order_key(message)
        if key is None:
            body = await self._call(call)
        else:
            async with self._order.turn(key):
                body = await self._call(call)
        self._recorder.answered(self.caller, message, len(body))
        self.notify(frames.ack(message.id, body))

    async def _call(self, call: InternalCall) -> bytes:
        caller = await self._rate_limited_caller()
        return await call.perform(caller.principal, caller.tenant)

    def _subscriber(self, caller: ConnectionCaller, name: str) -> Subscriber:
        return Subscriber(caller.principal, caller.tenant, self.id, name, self._canonical)

    def _unsubscribe(self, message: Message) -> None:
        message.allow(())
        if not self._subscriptions.end(message.required_id(), None):
            raise NotFound(f"The connection has no subscription {message.id!r}.")

    def _on_subscription_ended(self) -> None:
        if self.caller is not None:
            self._registry.subscription_ended(self.caller)

    async def _auth(self, message: Message) -> None:
        """Continue with other credentials of the same tenant."""
        caller = await callers.by_message(self.handshake, message)
        if self.state is ConnectionPhase.CLOSED:
            return
        if self.caller is not None:
            callers.same_tenant(self.caller, caller)
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        if self.state is ConnectionPhase.EXPIRED:
            self._enter(ConnectionPhase.OPEN)
        await self._set_caller(caller)
        self.notify(frames.ack(message.id))

    async def _set_caller(self, caller: ConnectionCaller) -> None:
        self.caller = caller
        await self._subscriptions.judge(caller)

    def _expire(self) -> None:
        self._enter(ConnectionPhase.EXPIRED)
        self._subscriptions.end_all(TokenExpired())
        closing = CloseReason(4401, TokenExpired.code)
        self._expiry = asyncio.get_running_loop().call_later(EXPIRED_S, self.close, closing)

    async def _disconnect(self, closing: CloseReason) -> None:
        """Send the error and the close frame, if the client is still connected."""
        if closing.error is not None:
            self._refuse(None, closing.error)
            # Its traceback refers to the connection, and the garbage collector runs rarely.
            closing.error.__traceback__ = closing.error.__context__ = None
        self._enter(ConnectionPhase.CLOSED)
        self._registry.leave(self)
        self._recorder.closed(closing.code)
        if self._expiry is not None:
            self._expiry.cancel()
        if closing is CloseReason.GONE or self._outgoing.is_closed:
            return
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(FLUSH_TIMEOUT_S):
                await self._outgoing.finish()
                await self._send(
                    {"type": "websocket.close", "code": closing.code, "reason": closing.reason}
                )
