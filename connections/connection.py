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
from connections.connection_state import ConnectionPhase, step
from connections.interruptible import Interruptible
from connections.message_calls import MessageCall
from connections.messages import Message
from connections.outgoing import Outgoing
from connections.products import Products
from connections.subscriptions import ConnectionSubscriptions, OpenSubscription, Subscriber
from connections.write_order import OrderedTurns
from data_plane.calls import check_rate_limits
from data_plane.internal_call import InternalCall
from data_plane.request_reader import EJSON_HEADER, EJSON_PARAMETER, is_canonical
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
    Unauthenticated,
)
from foundation.event_loop_budget import EventLoopBudget
from tenants import error_log

if TYPE_CHECKING:
    from connections.connection_registry import ConnectionRegistry, Verdict

GREETING_S = 5.0
#: An expired connection is closed unless `auth` arrives within this time.
EXPIRED_S = 60.0
MAX_AT_ONCE = 64
#: How long queued frames may take to leave when the server closes.
LAST_WORDS_S = 2.0


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
        #: Documents are sent as canonical Extended JSON.
        self._canonical = False
        self._receive = receive
        self._send = send
        self._calls = products.calls
        self._registry = registry
        self._outgoing = Outgoing(self._deliver, self._lost)
        self._held = ConnectionSubscriptions(
            self._subscriber,
            self._request_id,
            products.kinds,
            registry.starts,
            self._outgoing,
            self._one_less,
        )
        self._tasks: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(MAX_AT_ONCE)
        self._order = OrderedTurns()
        self._closing: CloseReason | None = None
        self._reading = Interruptible()
        self._expiry: asyncio.TimerHandle | None = None
        #: The memory of the message that was read last.
        self._claim: MessageClaim | None = None
        #: Pause before the next message is read.
        self._rest_s = 0.0

    async def run(self) -> None:
        """Serve the client until it disconnects or is disconnected."""
        try:
            await self._leave(await self._served())
        finally:
            await self._held.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self._outgoing.close()

    async def _served(self) -> CloseReason:
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

    def _lost(self) -> None:
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
            self._held.end_all(refused)
            self.close(CloseReason(code_for(refused), refused.code))
        elif caller is not None and caller.principal != self.caller.principal:
            await self._become(caller)

    def end(self, name: str, error: ApiError) -> bool:
        """End one subscription; return whether it existed."""
        return self._held.end(name, error)

    @property
    def subscriptions(self) -> list[OpenSubscription]:
        return list(self._held)

    def _enter(self, state: ConnectionPhase) -> None:
        self.state = step(self.state, state)

    async def _read(self) -> None:
        """Authenticate the client, then handle messages until it disconnects."""
        caller = await self._admitted()
        if caller is None:
            return
        self.caller = caller
        if self.state is ConnectionPhase.CLOSED:
            # Closed while it was admitted: it was not counted at that time and was not removed from
            # the count.
            self._registry.leave(self)
            return
        self._enter(ConnectionPhase.OPEN)
        self.notify(frames.welcome(self.id))
        budget = EventLoopBudget()
        while (text := await self._next(messages.MAX_BYTES)) is not None:
            await self._take(text)
            # The message may be large, and the next one may arrive much later.
            del text
            await self._pause()
            await self._outgoing.room()
            if budget.is_spent:
                await budget.yield_if_spent()

    async def _admitted(self) -> ConnectionCaller | None:
        """Return the caller once it may connect; record a rejection while its tenant is known."""
        try:
            caller = await self._greeted()
            if caller is not None and self.state is not ConnectionPhase.CLOSED:
                self._enter(ConnectionPhase.ADMITTING)
                await self._registry.admit(self, caller)
        except ApiError as error:
            error_log.note_refusal(error, "WebSocket hello")
            raise
        return caller

    async def _greeted(self) -> ConnectionCaller | None:
        """Return the caller, or None if the client disconnected before it named one."""
        if self.handshake.has_credentials:
            form = self.handshake.head.headers.get(EJSON_HEADER)
            self._canonical = is_canonical(form, EJSON_HEADER)
            return await callers.by_headers(self.handshake)
        try:
            async with asyncio.timeout(GREETING_S):
                text = await self._next(messages.MAX_FIRST_BYTES)
                if text is None:
                    return None
                message = messages.read(text)
                if message.type != "hello":
                    raise Unauthenticated("The first message must be `hello`, with a token.")
                self._canonical = is_canonical(message.text(EJSON_PARAMETER), EJSON_PARAMETER)
                return await callers.by_message(self.handshake, message, EJSON_PARAMETER)
        except TimeoutError:
            raise Unauthenticated("The client did not send `hello` in time.") from None

    async def _deliver(self, frame: bytes) -> None:
        if self.caller is not None:
            contention.tenants.record(self.caller.tenant.id)
        await self._send({"type": "websocket.send", "text": frame.decode()})

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
        return text

    async def _take(self, text: bytes) -> None:
        """Handle a message. An invalid one is answered with an error; the connection stays open."""
        try:
            message = messages.read(text)
        except ApiError as error:
            self._refuse(None, error)
            return
        try:
            await self._do(message)
        except Exception as error:  # noqa: BLE001 -- every error becomes a problem
            self._refuse(message, translate(error))

    async def _do(self, message: Message) -> None:
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
                await self._registry.starts.metered(self.caller, self._begin(message))
            case kind if kind in self._calls:
                message.required_id()
                await self._start(message, self._perform(message, self._calls[kind]))
            case _:
                raise messages.wrong("type", "Unknown message type.")

    async def _begin(self, message: Message) -> None:
        subscription = self._held.reserve(message.required_id())
        work = self._held.open(subscription, message.value, self._present)
        await self._start(message, self._registry.starts.metered(self.caller, work))

    async def _start(self, message: Message, work: Coroutine[None, None, None]) -> None:
        """Start work that takes time; wait first while too much is running."""
        await self._room.acquire()
        task = asyncio.create_task(self._guarded(message, work))
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        if (claim := self._claim) is not None:
            # The message stays in memory until the work on it is done.
            claim.retain()
            task.add_done_callback(lambda _: claim.release())

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._room.release()

    async def _guarded(self, message: Message, work: Coroutine[None, None, None]) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 -- every error becomes a problem
            self._refuse(message, translate(error))

    async def _pause(self) -> None:
        """Pause reading if too many requests were rejected."""
        rest_s, self._rest_s = self._rest_s, 0.0
        if rest_s > 0:
            await asyncio.sleep(rest_s)

    def _refuse(self, message: Message | None, error: ApiError) -> None:
        if error.status == TooManySubscriptions.status and self.caller is not None:
            rest_s = self._registry.penalty_delay.refused(self.caller.tenant.id)
            self._rest_s = max(self._rest_s, rest_s)
        what, name = ("", None) if message is None else (message.type, message.id)
        error_log.note_refusal(error, f"WebSocket {what}".rstrip())
        self.notify(frames.error(name, error, self._request_id))

    async def _counted(self) -> ConnectionCaller:
        """Return the caller, if it may make requests now."""
        caller = self._present()
        await check_rate_limits(caller.principal, caller.tenant, None)
        return caller

    def _present(self) -> ConnectionCaller:
        """Return the caller, unless its token has expired."""
        if self.state is ConnectionPhase.EXPIRED or self.caller is None:
            raise TokenExpired("The token has expired. Send `auth` with a new one.")
        return self.caller

    async def _perform(self, message: Message, kind: MessageCall) -> None:
        call = kind.read(message)
        if self._canonical:
            call.headers[EJSON_HEADER] = "canonical"
        key = kind.order_key(message)
        if key is None:
            body = await self._answered(call)
        else:
            async with self._order.turn(key):
                body = await self._answered(call)
        self.notify(frames.ack(message.id, body))

    async def _answered(self, call: InternalCall) -> bytes:
        caller = await self._counted()
        return await call.perform(caller.principal, caller.tenant)

    def _subscriber(self, caller: ConnectionCaller, name: str) -> Subscriber:
        return Subscriber(caller.principal, caller.tenant, self.id, name, self._canonical)

    def _unsubscribe(self, message: Message) -> None:
        message.allow(())
        if not self._held.end(message.required_id(), None):
            raise NotFound(f"The connection has no subscription {message.id!r}.")

    def _one_less(self) -> None:
        if self.caller is not None:
            self._registry.left(self.caller)

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
        await self._become(caller)
        self.notify(frames.ack(message.id))

    async def _become(self, caller: ConnectionCaller) -> None:
        self.caller = caller
        await self._held.judge(caller)

    def _expire(self) -> None:
        self._enter(ConnectionPhase.EXPIRED)
        self._held.end_all(TokenExpired())
        closing = CloseReason(4401, TokenExpired.code)
        self._expiry = asyncio.get_running_loop().call_later(EXPIRED_S, self.close, closing)

    async def _leave(self, closing: CloseReason) -> None:
        """Send the error and the close frame, if the client is still connected."""
        if closing.error is not None:
            self._refuse(None, closing.error)
            # Its traceback refers to the connection, and the garbage collector runs rarely.
            closing.error.__traceback__ = closing.error.__context__ = None
        self._enter(ConnectionPhase.CLOSED)
        self._registry.leave(self)
        if self._expiry is not None:
            self._expiry.cancel()
        if closing is CloseReason.GONE or self._outgoing.is_closed:
            return
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(LAST_WORDS_S):
                await self._outgoing.finish()
                await self._send(
                    {"type": "websocket.close", "code": closing.code, "reason": closing.reason}
                )
