"""The one connection of a client, kept open as long as there are subscriptions.

One task does everything: it connects, authenticates, subscribes, reads until the connection ends,
waits, and reconnects. A silent connection is probed (`ping`) and then closed, because a broken
connection looks the same as an idle one.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.typing import Subprotocol

from rillbase import ejson
from rillbase.backoff import RECONNECT, REFUSED
from rillbase.credentials import Credentials
from rillbase.errors import ClientClosed, ConnectionLost, RillbaseError, ServerError
from rillbase.listeners import Listeners
from rillbase.shapes import Document
from rillbase.view import FramesBroken

#: `idle` before the first subscription, `offline` while the client waits to reconnect.
ConnectionState: TypeAlias = Literal["idle", "connecting", "open", "offline", "closed"]

SUBPROTOCOL = Subprotocol("rillbase.v1")
DIAL_TIMEOUT_S = 10.0
HEARTBEAT_S = 10.0
MAX_MESSAGE_BYTES = 64 * 1024 * 1024
UNAUTHENTICATED, FORBIDDEN, TOO_MANY = 4401, 4403, 4429
RENEWAL = "auth"


class Channel(Protocol):
    """A subscription of any kind, as the connection sees it."""

    def message(self) -> Document:
        """Return the message that subscribes, or resumes from the last position."""

    def frame(self, frame: Document) -> None:
        """Process a frame; raise `FramesBroken` to start over."""

    def connection(self, state: ConnectionState) -> None:
        """Handle a change of the connection's state."""

    def failed(self, error: RillbaseError) -> None:
        """Handle a permanent rejection by the server."""


class Goodbye(Exception):
    """The server restarts."""

    def __init__(self, reconnect_in_s: float) -> None:
        self.reconnect_in_s = reconnect_in_s


@dataclass(eq=False, slots=True)
class AttachedChannel:
    """A channel, and its name on the current connection."""

    channel: Channel
    #: New for each attempt, so that late frames of an earlier one are recognized.
    name: str = ""
    failures: int = 0


class RealtimeConnection:
    """Keeps channels subscribed."""

    def __init__(self, url: str, credentials: Credentials, silence_s: float | None) -> None:
        self._address = url.replace("http", "ws", 1).rstrip("/") + "/v1/realtime"
        self._credentials = credentials
        self._silence_s = silence_s
        self._channels: dict[int, AttachedChannel] = {}
        self._named: dict[str, AttachedChannel] = {}
        self._numbers = 0
        self._socket: ClientConnection | None = None
        self._task: asyncio.Task[None] | None = None
        self._retries: set[asyncio.Task[None]] = set()
        self._refusal: Document | None = None
        self._renewing = False
        self.state: ConnectionState = "idle"
        self.listeners: Listeners[ConnectionState] = Listeners()

    async def attach(self, channel: Channel) -> None:
        """Start a subscription, and connect if necessary."""
        entry = self._channels[id(channel)] = AttachedChannel(channel)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="rillbase-connection")
            return
        channel.connection(self.state)
        if self._socket is not None:
            await self._subscribe(entry)

    async def detach(self, channel: Channel) -> None:
        """End a subscription; the connection ends with the last one."""
        entry = self._channels.pop(id(channel), None)
        if entry is None:
            return
        if self._named.pop(entry.name, None) is not None:
            await self._send({"type": "unsubscribe", "id": entry.name})
        if not self._channels:
            await self._stop()

    async def close(self) -> None:
        """End everything."""
        self._fail_all(ClientClosed())
        await self._stop()

    async def _stop(self) -> None:
        task, self._task = self._task, None
        if task is not None and task is not asyncio.current_task():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        self._enter("idle")

    # The life of the connection

    async def _run(self) -> None:
        failures = refusals = 0
        while self._channels:
            self._enter("connecting")
            began = asyncio.get_running_loop().time()
            wait_s = RECONNECT.wait_s(failures + 1)
            self._refusal = None
            try:
                await self._serve()
            except Goodbye as goodbye:
                failures, wait_s = 0, goodbye.reconnect_in_s
            except ConnectionClosed as closed:
                code = closed.rcvd.code if closed.rcvd is not None else 0
                refusals = refusals + 1 if code == UNAUTHENTICATED else 0
                if self._is_final(code, refusals):
                    break
                wait_s = 0.0 if code == UNAUTHENTICATED else wait_s
                wait_s = REFUSED.wait_s(failures + 1) if code == TOO_MANY else wait_s
            except (OSError, TimeoutError, WebSocketException, RillbaseError):
                refusals = 0
            was_open = self.state == "open"
            lasted_s = asyncio.get_running_loop().time() - began
            failures = 0 if was_open and lasted_s > RECONNECT.first_s else failures + 1
            self._enter("offline")
            await asyncio.sleep(wait_s)

    def _is_final(self, code: int, refusals: int) -> bool:
        """Fail all channels if reconnecting is pointless."""
        problem = self._refusal or {"code": "forbidden"}
        if code == UNAUTHENTICATED:
            if self._credentials.can_renew and refusals == 1:
                self._credentials.forget()
                return False
            self._fail_all(ServerError(self._refusal or {"code": "invalid_credentials"}, 401))
            return True
        if code == FORBIDDEN:
            self._fail_all(ServerError(problem, 403))
            return True
        return False

    async def _serve(self) -> None:
        """Run one connection until it ends."""
        hello = await self._credentials.hello()
        async with connect(
            self._address,
            subprotocols=[SUBPROTOCOL],
            max_size=MAX_MESSAGE_BYTES,
            open_timeout=DIAL_TIMEOUT_S,
            close_timeout=1,
            ping_interval=None,
        ) as socket:
            self._socket = socket
            try:
                await self._send({"type": "hello", **hello})
                await self._subscribe_all()
                await self._listen(socket)
            finally:
                self._socket = None
                self._renewing = False
                self._named.clear()
                for entry in self._channels.values():
                    entry.name = ""
                for task in self._retries:
                    task.cancel()

    async def _listen(self, socket: ClientConnection) -> None:
        silence_s = self._silence_s or DIAL_TIMEOUT_S
        while True:
            try:
                text = await _receive(socket, silence_s / 2)
            except TimeoutError:
                await self._send({"type": "ping", "id": "p"})
                try:
                    text = await _receive(socket, silence_s / 2)
                except TimeoutError:
                    # There would be no answer to a close frame either.
                    socket.transport.abort()
                    raise ConnectionLost from None
            frame = ejson.loads(text)
            if frame["type"] == "welcome" and self._silence_s is None:
                silence_s = 2 * frame["heartbeat_ms"] / 1000
            await self._take(frame)

    def _enter(self, state: ConnectionState) -> None:
        if state == self.state:
            return
        self.state = state
        for entry in list(self._channels.values()):
            entry.channel.connection(state)
        self.listeners.notify(state)

    # Frames

    async def _take(self, frame: Document) -> None:
        match frame["type"]:
            case "welcome":
                self._enter("open")
            case "goodbye":
                raise Goodbye(frame["reconnect_in_ms"] / 1000)
            case "heartbeat" | "pong":
                pass
            case "ack" if frame["id"] == RENEWAL:
                self._renewing = False
                await self._subscribe_all()
            case "error":
                await self._on_rejection(frame["id"], frame["error"])
            case "end":
                await self._on_rejection(
                    frame["id"], frame["error"] or {"code": "subscription_ended"}
                )
            case _:
                await self._deliver(frame)

    async def _deliver(self, frame: Document) -> None:
        entry = self._named.get(frame["id"])
        if entry is None:
            return
        try:
            entry.channel.frame(frame)
            entry.failures = 0
        except FramesBroken:
            await self._send({"type": "unsubscribe", "id": entry.name})
            await self._subscribe(entry)

    async def _on_rejection(self, name: str | None, problem: Document) -> None:
        if name is None:
            # The close code follows and decides.
            self._refusal = problem
            return
        if name == RENEWAL:
            self._renewing = False
        entry = self._named.pop(name, None)
        if entry is None:
            return
        entry.name = ""
        error = ServerError(problem, problem.get("status", 500))
        if error.code == "token_expired" and self._credentials.can_renew:
            await self._renew()
        elif error.is_temporary:
            task = asyncio.create_task(self._retry_subscription(entry))
            self._retries.add(task)
            task.add_done_callback(self._retries.discard)
        else:
            self._channels.pop(id(entry.channel), None)
            entry.channel.failed(error)

    async def _retry_subscription(self, entry: AttachedChannel) -> None:
        entry.failures += 1
        await asyncio.sleep(RECONNECT.wait_s(entry.failures))
        if id(entry.channel) in self._channels:
            await self._subscribe(entry)

    async def _renew(self) -> None:
        """Continue with a new token; restart the subscriptions that ended with the old one."""
        if self._renewing:
            return
        self._renewing = True
        self._credentials.forget()
        try:
            await self._send({"type": "auth", "id": RENEWAL, **await self._credentials.hello()})
        except BaseException:
            self._renewing = False
            raise

    async def _subscribe_all(self) -> None:
        for entry in list(self._channels.values()):
            if not entry.name:
                await self._subscribe(entry)

    async def _subscribe(self, entry: AttachedChannel) -> None:
        self._named.pop(entry.name, None)
        self._numbers += 1
        entry.name = f"s{self._numbers}"
        self._named[entry.name] = entry
        await self._send({"type": "subscribe", "id": entry.name, **entry.channel.message()})

    def _fail_all(self, error: RillbaseError) -> None:
        entry, self._channels = self._channels, {}
        for subscription in entry.values():
            subscription.channel.failed(error)

    async def _send(self, message: Document) -> None:
        if self._socket is None:
            return
        try:
            await self._socket.send(json.dumps(message))
        except ConnectionClosed:
            # The reader notices it too, and decides what to do.
            return


async def _receive(socket: ClientConnection, within_s: float) -> str | bytes:
    # `wait_for` of Python 3.11 loses a cancellation if something arrives at the same time.
    async with asyncio.timeout(within_s):
        return await socket.recv()
