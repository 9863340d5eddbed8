"""The outermost layer of the server, which applies to every request.

It assigns the request id, determines the client's address, rejects unknown hosts (`hosts.py`),
limits the body while it streams in, adds common response headers, converts uncaught errors to
problem documents, and records a log line, a metric, a span and an entry of the request log for each
request. It is cheap enough to wrap health probes too.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from types import MappingProxyType

from foundation import metrics, request_context, tracing
from foundation.asgi import CONNECTION, App, Message, Receive, Scope, Send
from foundation.environment import Environment
from foundation.errors import ApiError, BodyTooLarge, Internal, UnknownHost
from rillbase_server.client_address import Network, TrustedProxies
from rillbase_server.hosts import PROBES, host_check
from rillbase_server.security_headers import SecurityHeaders
from tenants.request_log import recorder
from tenants.request_log.recorder import RequestEntry, RequestKind

log = logging.getLogger("rillbase.request")

CLIENT_CLOSED = 499
QUIET_ROUTES = frozenset({"healthz", "readyz", "metrics"})
DATA_PLANE = ("/v1/", "/graphql")

_NO_PARAMETERS: Mapping[str, str] = MappingProxyType({})
_IMPORT = re.compile(r"/v1/(collections/[^/]+/import|datasets/[^/]+/uploads(/[^/]+)?)\Z")
_REQUEST_ID = re.compile(rb"[A-Za-z0-9][A-Za-z0-9._-]{7,63}\Z")
_WANTED = frozenset(
    {b"x-request-id", b"content-length", b"x-forwarded-for", b"x-forwarded-proto", b"traceparent"}
)


@dataclass(frozen=True, slots=True)
class EdgeSettings:
    body_max_bytes: int
    control_body_max_bytes: int
    import_max_bytes: int = 16 * 1024**3
    trusted_proxies: Sequence[Network] = ()
    hsts: bool = False
    #: Names that the server answers to.
    hosts: Sequence[str] = ("*",)

    @classmethod
    def of(cls, environment: Environment) -> EdgeSettings:
        return cls(
            body_max_bytes=environment.rillbase_body_max_bytes,
            control_body_max_bytes=environment.rillbase_control_body_max_bytes,
            import_max_bytes=environment.rillbase_import_max_bytes,
            trusted_proxies=environment.rillbase_trusted_proxies,
            hsts=environment.rillbase_env == "production",
            hosts=environment.rillbase_hosts,
        )

    def body_limit(self, path: str) -> int:
        if path.startswith(DATA_PLANE):
            # Imports are processed as they stream in; other bodies are held in memory.
            return self.import_max_bytes if _IMPORT.match(path) else self.body_max_bytes
        return self.control_body_max_bytes


class Edge:
    """Wraps the application. `scope["state"]` gets `request_id`, `client_address`, `route`, the
    route's `parameters`, and `is_stream` if an event stream is opened.
    """

    def __init__(self, app: App, settings: EdgeSettings) -> None:
        self._app = app
        self._settings = settings
        self._proxies = TrustedProxies(settings.trusted_proxies)
        self._security = SecurityHeaders(hsts=settings.hsts)
        self._is_known_host = host_check(settings.hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._websocket(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = _read_headers(scope)
        self._identify(scope, headers)
        exchange = Exchange(
            scope=scope,
            receive_from=receive,
            send_to=send,
            security=self._security,
            body_limit=self._settings.body_limit(scope["path"]),
        )
        metrics.HTTP_IN_PROGRESS.inc()
        try:
            with _span(scope, headers) as span:
                try:
                    await self._answer(exchange, headers)
                finally:
                    if span is not None:
                        span.answered(exchange.route, exchange.status, exchange.request_id)
        finally:
            metrics.HTTP_IN_PROGRESS.dec()
            exchange.record()

    async def _answer(self, exchange: Exchange, headers: Mapping[bytes, bytes]) -> None:
        scope = exchange.scope
        if scope["path"] not in PROBES and not self._is_known_host(scope["headers"]):
            await exchange.send_problem(UnknownHost())
            return
        length = headers.get(b"content-length", b"")
        if length.isdigit() and int(length) > exchange.body_limit:
            await exchange.refuse_body()
            return
        try:
            await self._app(exchange.scope, exchange.receive, exchange.send)
        except Exception:
            log.exception("unhandled error", extra={"route": exchange.route})
            if exchange.started:
                raise
            await exchange.send_problem(Internal())
        else:
            if exchange.overflowed and not exchange.started:
                await exchange.refuse_body()

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._identify(scope, _read_headers(scope))
        begin = time.perf_counter()
        try:
            if self._is_known_host(scope["headers"]):
                await self._app(scope, receive, send)
            else:
                await refuse_handshake(send, UnknownHost(), scope["state"]["request_id"])
        finally:
            log.info(
                "WebSocket closed",
                extra={
                    "route": scope["state"].get("route", ""),
                    "duration_ms": round((time.perf_counter() - begin) * 1000, 3),
                    "client": scope["state"]["client_address"],
                },
            )

    def _identify(self, scope: Scope, headers: Mapping[bytes, bytes]) -> None:
        """Set the request id and the client's address, for the application and log lines."""
        header = headers.get(b"x-request-id", b"")
        request_id = header.decode() if _REQUEST_ID.match(header) else secrets.token_hex(16)
        peer, port = scope.get("client") or ("", 0)
        address = self._proxies.client(peer, headers.get(b"x-forwarded-for", b"").decode("latin-1"))
        scheme = headers.get(b"x-forwarded-proto")
        if scheme is not None and self._proxies.trust(peer):
            last = scheme.rpartition(b",")[2].strip().lower()
            secure = last in (b"https", b"wss")
            names = ("wss", "ws") if scope["type"] == "websocket" else ("https", "http")
            scope["scheme"] = names[0] if secure else names[1]
        if address != peer:
            scope["client"] = (address, port)
        state = scope.setdefault("state", {})
        state["request_id"] = request_id
        state["client_address"] = address
        request_context.request_id.set(request_id)
        request_context.client_address.set(address)
        request_context.tenant_id.set("")
        request_context.principal.set("")
        request_context.error_code.set("")
        request_context.connection.set(scope.get("extensions", {}).get(CONNECTION))


@dataclass(slots=True, kw_only=True)
class Exchange:
    """One request and its response, as they pass through the edge."""

    scope: Scope
    receive_from: Receive
    send_to: Send
    security: SecurityHeaders
    body_limit: int
    begin: float = field(default_factory=time.perf_counter)
    status: int = CLIENT_CLOSED
    started: bool = False
    overflowed: bool = False
    bytes_in: int = 0
    bytes_out: int = 0
    tenant: str = ""
    principal: str = ""
    error_code: str = ""

    @property
    def route(self) -> str:
        route: str = self.scope["state"].get("route", "")
        return route

    @property
    def request_id(self) -> str:
        request_id: str = self.scope["state"]["request_id"]
        return request_id

    async def receive(self) -> Message:
        """Forward the body; beyond the limit, the application sees the client disconnect."""
        if self.overflowed:
            return {"type": "http.disconnect"}
        message = await self.receive_from()
        if message["type"] == "http.request":
            self.bytes_in += len(message.get("body", b""))
            if self.bytes_in > self.body_limit:
                self.overflowed = True
                return {"type": "http.disconnect"}
        return message

    async def send(self, message: Message) -> None:
        """Forward the response with the common headers."""
        if self.overflowed and not self.started:
            return
        if message["type"] == "http.response.start":
            self.started = True
            self.status = message["status"]
            # `send` is called in the application's task, so its context is the current one.
            self.tenant = request_context.tenant_id.get()
            self.principal = request_context.principal.get()
            self.error_code = request_context.error_code.get()
            if self._is_stream:
                self._note(RequestKind.OPENED, time.perf_counter() - self.begin)
            headers = list(message.get("headers", ()))
            headers += self.security.missing(self.scope["path"], headers)
            headers.append((b"x-request-id", self.request_id.encode()))
            message = {**message, "headers": headers}
        else:
            self.bytes_out += len(message.get("body", b""))
        await self.send_to(message)

    async def refuse_body(self) -> None:
        """Respond with 413. The rest of the body is not read, so the connection must be closed."""
        self.overflowed = False
        error = BodyTooLarge(
            f"The body may have at most {self.body_limit} bytes.", headers={"Connection": "close"}
        )
        await self.send_problem(error)

    async def send_problem(self, error: ApiError) -> None:
        for message in _problem(error, self.request_id, "http"):
            await self.send(message)

    def record(self) -> None:
        """Record the request's metrics and log line."""
        seconds = time.perf_counter() - self.begin
        method = self.scope["method"]
        route = self.route or metrics.UNMATCHED_ROUTE
        metrics.http_answered(route, method, self.status, seconds)
        metrics.POOLS.sample()
        self._note(RequestKind.CLOSED if self._is_stream else RequestKind.REQUEST, seconds)
        level = logging.DEBUG if route in QUIET_ROUTES else logging.INFO
        if log.isEnabledFor(level):
            log.log(
                level,
                "request",
                extra={
                    "method": method,
                    "route": route,
                    "status": self.status,
                    "duration_ms": round(seconds * 1000, 3),
                    "bytes": self.bytes_out,
                    "client": self.scope["state"]["client_address"],
                    "tenant": self.tenant,
                    "principal": self.principal,
                },
            )

    @property
    def _is_stream(self) -> bool:
        """Whether the response is an event stream that was opened."""
        return "is_stream" in self.scope["state"]

    def _note(self, kind: RequestKind, seconds: float) -> None:
        """Record the request in the tenant's request log."""
        # A client that is gone gets no response: then the context is that of the edge's own task.
        tenant = self.tenant or request_context.tenant_id.get()
        route, method = self.route, self.scope["method"]
        if not tenant or route == recorder.OWN_ROUTE:
            return
        path = route if route.startswith("/") else f"/{route}"
        principal = self.principal or request_context.principal.get()
        recorder.note(
            RequestEntry(
                tenant,
                kind,
                method if method in metrics.METHODS else "other",
                recorder.route_name(path, self.scope["state"].get("parameters") or _NO_PARAMETERS),
                self.status,
                seconds,
                self.bytes_in,
                self.bytes_out,
                principal[: recorder.MAX_TEXT_CHARS],
                self.request_id,
                self.error_code,
            )
        )


async def refuse_handshake(send: Send, error: ApiError, request_id: str) -> None:
    """Respond to a WebSocket handshake with a problem document."""
    for message in _problem(error, request_id, "websocket.http"):
        await send(message)


def _problem(error: ApiError, request_id: str, kind: str) -> tuple[Message, Message]:
    body = json.dumps(error.problem(request_id)).encode()
    headers = [
        (b"content-type", b"application/problem+json"),
        (b"content-length", str(len(body)).encode()),
        *((k.lower().encode(), v.encode()) for k, v in error.headers.items()),
    ]
    return (
        {"type": f"{kind}.response.start", "status": error.status, "headers": headers},
        {"type": f"{kind}.response.body", "body": body},
    )


def _read_headers(scope: Scope) -> dict[bytes, bytes]:
    """Return the headers that the edge reads; repeated ones are joined."""
    headers: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        if name in _WANTED:
            headers[name] = headers[name] + b"," + value if name in headers else value
    return headers


def _span(
    scope: Scope, headers: Mapping[bytes, bytes]
) -> AbstractContextManager[tracing.HttpSpan | None]:
    traces = tracing.active()
    if traces is None:
        return nullcontext()
    parent = headers.get(b"traceparent", b"").decode("latin-1")
    return traces.http_request(scope["method"], {"traceparent": parent})
